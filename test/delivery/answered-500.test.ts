import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, simulator, TOKEN } from '../providers/simulator.ts';
import { organizationFixture } from '../support/organization.ts';
import { harness } from './harness.ts';

const CALLS = 20;
const EMAILS_PER_CALL = 10;

const { pool, orgId } = await organizationFixture(10);

async function countAccepted(postmarkUrl: string): Promise<number> {
  const headers = { 'x-postmark-server-token': TOKEN };
  const answer = await fetch(`${postmarkUrl}/messages/outbound?count=1&offset=0`, { headers });
  return ((await answer.json()) as { TotalCount: number }).TotalCount;
}

for (const status of [500, 503])
  test(`emails of a call that Postmark takes and answers with ${status} arrive once`, async (t) => {
    const { postmarkUrl, behave } = await simulator(t);
    const set = harness(pool, orgId, []);
    const { deliver } = harness(pool, orgId, [], { ...set.deps, providers: [at(postmarkUrl, 30)] });
    const members = await set.acceptMany(CALLS * EMAILS_PER_CALL);
    for (let call = 0; call < CALLS; call++) {
      const some = members.slice(call * EMAILS_PER_CALL, (call + 1) * EMAILS_PER_CALL);
      // One call of twenty.
      if (call === 3) await behave({ fail_after_accept: 1, status });
      await deliver(...some);
    }
    const results = await deliver(...members);
    assert.ok(results.every((result) => result.state === 'ended' && result.status === 'sent'));
    assert.equal(await countAccepted(postmarkUrl), members.length);
    const { rows } = await pool.query<{ attempts: number }>(
      'SELECT count(*)::int AS attempts FROM attempts WHERE message_id = ANY ($1)',
      [members.map(({ id }) => id)],
    );
    assert.equal(rows[0]?.attempts, members.length);
  });
