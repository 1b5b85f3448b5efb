import assert from 'node:assert/strict';
import { newId } from '../../src/domain/ids.ts';
import type { SuppressionOrigin } from '../../src/domain/email/suppression.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { addSuppressions } from '../../src/store/suppressions/suppressions.ts';
import type { Answer } from './service.ts';

/** A suppression as the API answers it. */
export interface Suppression extends Readonly<Record<string, unknown>> {
  readonly id: string;
  readonly email: string;
  readonly origin: SuppressionOrigin;
}

export interface Page {
  readonly suppressions: readonly Suppression[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

let count = 0;

/** An address that no other test has. */
export function address(): string {
  return `person${++count}@example.net`;
}

/** Puts an address on a list as something else than a request would. @returns its id */
export async function putSuppression(
  db: Db,
  orgId: string,
  email: string,
  origin: SuppressionOrigin,
  fields: object = {},
): Promise<string> {
  const now = Date.now();
  const id = newId('sup', now);
  const entry = { id, event_id: newId('evt', now), org_id: orgId, email, origin, ...fields };
  assert.deepEqual(await addSuppressions(db, [entry]), [id]);
  return id;
}

/** The suppression in an answer of this status. */
export function bodyOf(answer: Answer, status: number): Suppression {
  assert.equal(answer.status, status, answer.text);
  return answer.body as Suppression;
}

/** The suppressions in an answer of this status. */
export function pageOf(answer: Answer, status: number): Page {
  assert.equal(answer.status, status, answer.text);
  return answer.body as Page;
}
