import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { insertNumber } from '../../src/store/chat/numbers.ts';
import { newId } from '../../src/lib/ids.ts';
import type { Stack } from './stack.ts';

/** The organization of one run. */
export interface Tenant {
  readonly orgId: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly from: string;
  /** Connected chat-app numbers, by provider. */
  readonly numbers: { readonly twilio: string; readonly meta: string };
}

/**
 * Makes the organization of a run with its domain, numbers and webhook endpoint.
 * @param run a number that is unique within the stack
 * @param receiver URL of its webhook endpoint
 */
export async function makeTenant(
  { pool, url }: Pick<Stack, 'pool' | 'url'>,
  run: number,
  receiver: string,
): Promise<Tenant> {
  const { id: orgId, api_key } = await createOrganization(pool, `Run ${run}`);
  const { name } = await registerDomainForOperator(pool, orgId, `run-${run}.example`, true);
  const number = (digit: number) => `+4915${digit}${String(10_000_000 + run)}`;
  const numbers = { twilio: number(7), meta: number(9) };
  for (const provider of ['twilio', 'meta'] as const) {
    const phoneNumberId = provider === 'meta' ? String(1_000_000 + run) : null;
    const own = {
      provider,
      phone_number_id: phoneNumberId,
      account_sid: null,
      templates: [],
      verified_by: 'operator',
    } as const;
    await insertNumber(pool, orgId, { ...own, id: newId('num'), number: numbers[provider] }, null);
  }
  const headers = { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ url: receiver });
  const answer = await fetch(`${url}/v1/webhooks`, { method: 'POST', headers, body });
  if (answer.status !== 201) throw new Error(`no endpoint was made: ${answer.status} ${await answer.text()}`);
  return { orgId, headers, from: `Faults <faults@${name}>`, numbers };
}
