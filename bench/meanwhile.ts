import { setTimeout as sleep } from 'node:timers/promises';
import type { DevFile } from '../src/main/dev-file.ts';
import type { Pool } from '../src/store/postgres/pool.ts';
import { call, email } from './load.ts';
import { untilSent } from './waiting.ts';

/** The effect of a batch on other requests while it is accepted and sent. */
export interface Others {
  /** Milliseconds per request. */
  readonly latencies: readonly number[];
  /** The ids of the single emails. */
  readonly ids: readonly string[];
}

/** Posts a single email every 50 ms and reads it, until `signal` aborts. */
export async function others(stack: DevFile, signal: AbortSignal): Promise<Others> {
  const latencies: number[] = [];
  const ids: string[] = [];
  const timed = async (method: 'GET' | 'POST', path: string, body?: unknown) => {
    const began = performance.now();
    const { id } = await call<{ id: string }>(stack, method, path, body);
    latencies.push(performance.now() - began);
    return id;
  };
  while (!signal.aborted) {
    const id = await timed('POST', '/v1/emails', email(stack, 'single@example.net'));
    ids.push(id);
    await timed('GET', `/v1/emails/${id}`);
    await sleep(50, undefined, { signal }).catch(() => undefined);
  }
  return { latencies, ids };
}

/**
 * Milliseconds of an email from its acceptance to the provider's acceptance, and of the parts before and during the provider
 * call.
 */
export interface HandOver {
  readonly ms: number;
  readonly before_call: number;
  readonly call: number;
}

/** Returns the hand-over of each email, from its timeline and its successful attempt. */
export async function handOvers(pool: Pool, ids: readonly string[]): Promise<HandOver[]> {
  await untilSent(pool);
  const { rows } = await pool.query<HandOver>(
    `SELECT (extract(epoch FROM event.created_at - email.created_at) * 1000)::float8 AS ms,
            (extract(epoch FROM attempt.started_at - email.created_at) * 1000)::float8 AS before_call,
            (extract(epoch FROM attempt.ended_at - attempt.started_at) * 1000)::float8 AS call
     FROM emails AS email JOIN email_events AS event ON event.email_id = email.id AND event.type = 'email.sent'
          JOIN attempts AS attempt ON attempt.message_id = email.id AND attempt.outcome = 'sent'
     WHERE email.id = ANY ($1)`,
    [ids],
  );
  return rows;
}
