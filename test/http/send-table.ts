import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, type Organization, useService } from './service.ts';

type Fields = Record<string, unknown>;

/**
 * An email that is accepted, or refused with 422 for `param` and a message that begins with `message`. The fields change a
 * minimal valid email; undefined omits a field.
 */
export type Row = readonly [
  what: string,
  fields: Fields | ((organization: Organization) => Fields),
  refusal?: readonly [param: string | undefined, message: string],
];

/** Sends every row of every rule. At the end exactly the accepted emails are stored. */
export async function sendTable(rules: Readonly<Record<string, readonly Row[]>>): Promise<void> {
  const service = await useService();
  const organization = await service.organization();
  let accepted = 0;

  for (const [rule, rows] of Object.entries(rules)) {
    describe(rule, () => {
      for (const [what, fields, refusal] of rows) {
        it(`${refusal ? `422 ${JSON.stringify(refusal[0] ?? '').slice(0, 40)}` : '202'}: ${what}`, async () => {
          const answer = await organization.send(typeof fields === 'function' ? fields(organization) : fields);
          if (refusal) {
            assertRefused(answer, 422, 'validation_error', ...refusal);
          } else {
            assert.equal(answer.status, 202, answer.text);
            accepted++;
          }
        });
      }
    });
  }

  it('stores the accepted emails and no others', async () => {
    const { rows } = await service.pool.query<{ count: number }>(
      `SELECT count(*)::int FROM emails UNION ALL SELECT count(*)::int FROM email_bodies
       UNION ALL SELECT count(*)::int FROM outbox`,
    );
    assert.deepEqual(
      rows.map(({ count }) => count),
      [accepted, accepted, accepted],
    );
    assert.equal(service.wakes(), accepted);
  });
}

/** n different addresses. */
export function addresses(n: number): string[] {
  return Array.from({ length: n }, (_, index) => `p${index}@example.net`);
}
