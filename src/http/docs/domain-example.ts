/** A sender domain in lists. */
export const domain = {
  id: 'dm_01kajcf3g5h7j9k1m3n5p7q9rs',
  name: 'mail.example.com',
  status: 'pending',
  trusted: false,
  created_at: '2026-03-01T09:30:00.000Z',
  verified_at: null,
  last_checked_at: '2026-03-01T09:30:01.118Z',
  next_check_at: '2026-03-01T09:31:01.118Z',
  open_tracking: false,
  click_tracking: false,
};

const record = { priority: null, ttl: 3_600, status: 'pending', found: null, error: null };

/** A sender domain with its DNS records. */
export const wholeDomain = {
  ...domain,
  records: [
    {
      ...record,
      record: 'OWNERSHIP',
      type: 'TXT',
      name: '_sendwright.mail.example.com',
      value: 'sendwright-verification=4f1c9d0e6b7a4c22a1b3c5d7e9f01234',
      required: true,
      status: 'verified',
      found: ['sendwright-verification=4f1c9d0e6b7a4c22a1b3c5d7e9f01234'],
    },
    {
      ...record,
      record: 'DKIM',
      type: 'TXT',
      name: 'sw1._domainkey.mail.example.com',
      value: 'v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A…',
      required: true,
      found: [],
      error: 'there is no such record yet',
    },
    {
      ...record,
      record: 'SPF',
      type: 'TXT',
      name: 'mail.example.com',
      value: 'v=spf1 a:smtp.example.net ~all',
      required: false,
      status: 'failed',
      found: ['v=spf1 mx -all', 'v=spf1 include:spf.example.net ~all'],
      error: 'there are two SPF records, and receivers ignore both; combine them into one',
    },
  ],
};
