import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertRefused, type Organization, type Service, startService } from './service.ts';

type Fields = Record<string, unknown>;

/**
 * One email and what becomes of it: accepted, or refused with 422 at `param` in words that begin with `says`.
 * The fields change a smallest valid email; undefined leaves one out.
 */
export type Row = readonly [
  what: string,
  fields: Fields | ((organization: Organization) => Fields),
  refusal?: readonly [param: string | undefined, says: string],
];

/** Sends every row of every rule through the front door; at the end, what was accepted is what was stored. */
export function sendTable(rules: Readonly<Record<string, readonly Row[]>>): void {
  let service: Service;
  let organization: Organization;
  let accepted = 0;
  before(async () => {
    service = await startService();
    organization = await service.organization();
  });
  after(() => service.close());

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

  it('what was refused was not stored', async () => {
    const { rows } = await service.pool.query<{ count: number }>(
      `SELECT count(*)::int FROM emails UNION ALL SELECT count(*)::int FROM email_bodies
       UNION ALL SELECT count(*)::int FROM email_events UNION ALL SELECT count(*)::int FROM outbox`,
    );
    assert.deepEqual(
      rows.map(({ count }) => count),
      [accepted, accepted, accepted, accepted],
    );
    assert.equal(service.wakes(), accepted);
  });
}

/** n different addresses. */
export function addresses(n: number): string[] {
  return Array.from({ length: n }, (_, index) => `p${index}@example.net`);
}
