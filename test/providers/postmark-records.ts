/** Records shaped as Postmark's pages about its webhooks show them, with names and ids of ours. */

export const MESSAGE_ID = '883953f4-6105-42a2-a16a-77a8eac79483';
const METADATA = { email: 'em_1', call: 'call_1' };

export const DELIVERY = {
  RecordType: 'Delivery',
  ServerID: 23,
  MessageStream: 'outbound',
  MessageID: MESSAGE_ID,
  Recipient: 'John@example.net',
  Tag: '',
  DeliveredAt: '2026-03-01T09:30:00.1234567Z',
  Details: 'smtp;250 2.0.0 OK',
  Metadata: METADATA,
};

const READER = {
  Client: { Name: 'Chrome 134.0', Company: 'Google', Family: 'Chrome' },
  OS: { Name: 'OS X 10.7 Lion', Company: 'Apple', Family: 'OS X 10' },
  Platform: 'Desktop',
  UserAgent: 'Mozilla/5.0',
  Geo: { CountryISOCode: 'RS', Country: 'Serbia', IP: '192.0.2.1' },
};

export const OPEN = {
  RecordType: 'Open',
  FirstOpen: true,
  ReadSeconds: 5,
  ...READER,
  MessageID: MESSAGE_ID,
  MessageStream: 'outbound',
  ReceivedAt: '2026-03-01T09:31:00Z',
  Tag: 'welcome',
  Recipient: 'john@example.net',
  Metadata: METADATA,
};

export const CLICK = {
  RecordType: 'Click',
  ClickLocation: 'HTML',
  ...READER,
  OriginalLink: 'https://example.com/a?b=1&c=%20',
  MessageID: MESSAGE_ID,
  MessageStream: 'outbound',
  ReceivedAt: '2026-03-01T04:32:00.0000000-05:00',
  Tag: 'welcome',
  Recipient: 'john@example.net',
  Metadata: METADATA,
};

export const BOUNCE = {
  RecordType: 'Bounce',
  ID: 4_323_372_036_854,
  Type: 'HardBounce',
  TypeCode: 1,
  Name: 'Hard bounce',
  Tag: 'welcome',
  MessageID: MESSAGE_ID,
  ServerID: 23,
  MessageStream: 'outbound',
  Description: 'The server was unable to deliver your message.',
  Details: '',
  Email: 'john@example.net',
  From: 'sender@example.com',
  BouncedAt: '2026-03-01T09:33:00.1230000Z',
  DumpAvailable: true,
  Inactive: true,
  CanActivate: true,
  Subject: 'Hello',
  Metadata: METADATA,
};

export const COMPLAINT = {
  ...BOUNCE,
  RecordType: 'SpamComplaint',
  ID: 42,
  Type: 'SpamComplaint',
  TypeCode: 100001,
  Name: 'Spam complaint',
  Details: 'Test spam complaint details',
  CanActivate: false,
};

export const SUBSCRIPTION_CHANGE = {
  RecordType: 'SubscriptionChange',
  MessageID: MESSAGE_ID,
  ServerID: 23,
  MessageStream: 'broadcast',
  ChangedAt: '2026-03-01T09:34:00Z',
  Recipient: 'john@example.net',
  Origin: 'Recipient',
  SuppressSending: true,
  SuppressionReason: 'ManualSuppression',
  Tag: '',
  Metadata: METADATA,
};
