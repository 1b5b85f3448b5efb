import { type OutgoingEmail, toOutgoing } from '../../src/domain/email/outgoing.ts';

type StoredEmail = Parameters<typeof toOutgoing>[0] & Parameters<typeof toOutgoing>[1];

let count = 0;

/** An email as the store would hand it over; `fields` are in the store's words. */
export function outgoing(fields: Partial<StoredEmail> = {}): OutgoingEmail {
  const id = `em_${String(++count).padStart(26, '0')}`;
  const email: StoredEmail = {
    id,
    marketing: false,
    from: 'Acme <hello@acme.example>',
    to: [`person${count}@example.net`],
    cc: null,
    bcc: null,
    reply_to: null,
    subject: 'Hello',
    html: null,
    text: 'Hi.',
    headers: {},
    ...fields,
  };
  return toOutgoing(email, email);
}

/** `n` different plain addresses. */
export function addresses(n: number, prefix = 'r'): string[] {
  return Array.from({ length: n }, (_, i) => `${prefix}${i}@example.net`);
}
