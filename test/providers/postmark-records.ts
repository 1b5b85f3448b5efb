/** Records in the shape that Postmark documents for its webhooks, with the fields that we read. */

export const MESSAGE_ID = '883953f4-6105-42a2-a16a-77a8eac79483';
const METADATA = { email: 'em_1', call: 'call_1' };

export const DELIVERY = {
  RecordType: 'Delivery',
  MessageStream: 'outbound',
  MessageID: MESSAGE_ID,
  Recipient: 'John@example.net',
  DeliveredAt: '2026-03-01T09:30:00.1234567Z',
  Details: 'smtp;250 2.0.0 OK',
  Metadata: METADATA,
};

export const OPEN = {
  RecordType: 'Open',
  MessageID: MESSAGE_ID,
  MessageStream: 'outbound',
  ReceivedAt: '2026-03-01T09:31:00Z',
  Recipient: 'john@example.net',
  Metadata: METADATA,
};

export const CLICK = {
  RecordType: 'Click',
  OriginalLink: 'https://example.com/a?b=1&c=%20',
  MessageID: MESSAGE_ID,
  MessageStream: 'outbound',
  ReceivedAt: '2026-03-01T04:32:00.0000000-05:00',
  Recipient: 'john@example.net',
  Metadata: METADATA,
};

export const BOUNCE = {
  RecordType: 'Bounce',
  ID: 4_323_372_036_854,
  Type: 'HardBounce',
  MessageID: MESSAGE_ID,
  MessageStream: 'outbound',
  Description: 'The server was unable to deliver your message.',
  Details: '',
  Email: 'john@example.net',
  BouncedAt: '2026-03-01T09:33:00.1230000Z',
  Inactive: true,
  Metadata: METADATA,
};

export const COMPLAINT = {
  ...BOUNCE,
  RecordType: 'SpamComplaint',
  ID: 42,
  Type: 'SpamComplaint',
  Details: 'Test spam complaint details',
};

export const SUBSCRIPTION_CHANGE = {
  RecordType: 'SubscriptionChange',
  MessageID: MESSAGE_ID,
  MessageStream: 'broadcast',
  ChangedAt: '2026-03-01T09:34:00Z',
  Recipient: 'john@example.net',
  Origin: 'Recipient',
  SuppressSending: true,
  SuppressionReason: 'ManualSuppression',
  Metadata: METADATA,
};
