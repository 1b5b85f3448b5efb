import assert from 'node:assert/strict';
import type { OutgoingEmail } from '../../src/domain/email/outgoing.ts';
import { accountLinkSeal } from '../../src/domain/email/account-link.ts';
import { harnessWithProvider } from '../delivery/harness.ts';
import { SECRET_KEY, type Service, startService } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';

/** The origin of links in emails about accounts. */
export const PUBLIC_URL = 'https://mail.example.com';
export const SYSTEM_DOMAIN = 'system.example.com';
const FROM = `Sendwright <accounts@${SYSTEM_DOMAIN}>`;

/** A service that sends emails about accounts, and the organization that sends them. */
export async function startWithAccountEmails() {
  const seal = accountLinkSeal(SECRET_KEY);
  const service = await startService({ accountEmails: { from: FROM, publicUrl: PUBLIC_URL, seal } });
  const operator = await service.organization('Operator');
  await operator.addDomain(SYSTEM_DOMAIN);
  return { service, operator };
}

/** The ids of emails to an address, latest first. */
export async function emailsTo({ pool }: Service, address: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT id FROM emails WHERE "to" = $1::jsonb ORDER BY created_at DESC, id DESC`,
    [JSON.stringify([address])],
  );
  return rows.map(({ id }) => id);
}

/** Delivers the latest email to an address, which may be accepted later. @returns it, as its provider got it */
export async function deliverTo(service: Service, orgId: string, address: string): Promise<OutgoingEmail> {
  const id = await eventually(`an email to ${address}`, async () => (await emailsTo(service, address))[0]);
  const { provider, deliverOne } = harnessWithProvider(service.pool, orgId);
  await deliverOne({ id, version: 0 });
  const [email] = provider.given;
  assert.ok(email, 'it was sent');
  return email;
}

/** The path of the only link in an email. */
export function pathIn({ text }: OutgoingEmail): string {
  const [, path] = new RegExp(`${PUBLIC_URL}(/dashboard/[\\w/-]+)`).exec(text ?? '') ?? [];
  assert.ok(path !== undefined, text ?? '');
  return path;
}
