import { parseMailbox } from './address.ts';
import type { EmailRequest } from './email.ts';

/**
 * How much of the monthly quota and of the email rate an email takes: 1, or for a marketing email the number of its
 * recipients, since each gets a message of its own. An address that occurs twice across to, cc and bcc is one recipient.
 */
export function allowanceOf({ marketing, to, cc, bcc }: Pick<EmailRequest, 'marketing' | 'to' | 'cc' | 'bcc'>): number {
  if (!marketing) return 1;
  const addresses = [...to, ...(cc ?? []), ...(bcc ?? [])].map((text) => {
    const mailbox = parseMailbox(text);
    return (typeof mailbox === 'string' ? text : mailbox.address).toLowerCase();
  });
  return new Set(addresses).size;
}
