import { bareAddress } from './address.ts';
import type { EmailRequest } from './email.ts';

/**
 * Returns what an email takes from the monthly quota and the rate limit: 1, or for marketing email one per recipient, since
 * each recipient gets a separate message. An address that occurs several times in to, cc and bcc is one recipient.
 */
export function costOf({ marketing, to, cc, bcc }: Pick<EmailRequest, 'marketing' | 'to' | 'cc' | 'bcc'>): number {
  if (!marketing) return 1;
  const addresses = [...to, ...(cc ?? []), ...(bcc ?? [])];
  return new Set(addresses.map((text) => bareAddress(text) ?? text.toLowerCase())).size;
}
