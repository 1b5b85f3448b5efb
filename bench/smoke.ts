import { request } from 'undici';
import type { DevFile } from '../src/main/dev-file.ts';
import { call, email } from './load.ts';

const SINGLES = 100;
const IN_BATCH = 300;
/** Most that the inbox tells at once. */
const LIMIT = 1_000;

/** A short load, of which only the shape is judged: who was to get an email, and who got one, once for each time. */
export interface Smoke {
  readonly accepted: readonly string[];
  readonly batchId: string;
  /** Emails accepted a second, of the singles. */
  readonly perSecond: number;
  /** Milliseconds until the batch was accepted. */
  readonly batchMs: number;
}

/** Posts single emails, all at once, and a batch, each email to an address of its own. */
export async function smoke(stack: DevFile): Promise<Smoke> {
  const singles = Array.from({ length: SINGLES }, (_, i) => email(stack, `smoke-single-${i}@example.net`));
  const members = Array.from({ length: IN_BATCH }, (_, i) => email(stack, `smoke-batch-${i}@example.net`));
  const began = performance.now();
  await Promise.all(singles.map((single) => call(stack, 'POST', '/v1/emails', single)));
  const singlesMs = performance.now() - began;
  const from = performance.now();
  const { id: batchId } = await call<{ id: string }>(stack, 'POST', '/v1/emails/batch', { emails: members });
  return {
    accepted: [...singles, ...members].map(({ to }) => to),
    batchId,
    perSecond: SINGLES / (singlesMs / 1_000),
    batchMs: performance.now() - from,
  };
}

/** Addresses of the emails of `smoke` that the provider took, once for each time. */
export async function taken({ inbox_url: inbox }: DevFile): Promise<string[]> {
  const { body } = await request(`${inbox ?? ''}/messages?limit=${LIMIT}`);
  const messages = (await body.json()) as { to: string[] }[];
  return messages.flatMap(({ to }) => to).filter((address) => address.startsWith('smoke-'));
}
