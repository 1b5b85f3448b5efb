/** What a callback says about one email. */
export interface Report {
  readonly change: 'delivered';
  readonly email: { readonly id: string; readonly dedupe_key: string };
}

/**
 * Reads a record that Postmark posts to its webhook (https://postmarkapp.com/developer/webhooks/delivery-webhook).
 * Our own id comes back in its metadata, so it can be told apart before our record of the hand-over exists.
 * @returns 'foreign' for a delivery that is not of our email, undefined for a record that is not understood
 */
export function parsePostmarkCallback(body: unknown): Report | 'foreign' | undefined {
  const record = (body ?? {}) as Partial<Record<'RecordType' | 'MessageID' | 'Recipient' | 'DeliveredAt', unknown>> & {
    Metadata?: { email?: unknown };
  };
  const { RecordType, MessageID, Recipient, DeliveredAt } = record;
  const id = record.Metadata?.email;
  if (RecordType !== 'Delivery') return undefined;
  if (typeof id !== 'string') return 'foreign';
  return {
    change: 'delivered',
    email: { id, dedupe_key: `Delivery ${String(MessageID)} ${String(Recipient)} ${String(DeliveredAt)}` },
  };
}
