import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Feedback } from '../../src/domain/email/feedback.ts';
import { gatherFeedback } from '../../src/projection/gathered-feedback.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { acceptMany, emailRow, organization, timeline } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(10);
const orgId = await organization(pool);

const emails = (n: number) => acceptMany(pool, orgId, n);

function delivered(emailId: string, dedupeKey = 'delivered 1'): Feedback {
  return { emailId, change: 'delivered', recipient: 'person@example.net', dedupeKey };
}

test('reports that arrive together share transactions, and each is committed when it resolves', async () => {
  const ids = await emails(500);
  let transactions = 0;
  const counted = Object.assign(Object.create(pool) as Pool, {
    connect: () => {
      transactions++;
      return pool.connect();
    },
  });
  const report = gatherFeedback(counted);
  await Promise.all(
    ids.map(async (id) => {
      await report(delivered(id));
      assert.deepEqual(
        [(await emailRow(pool, id)).status, ...(await timeline(pool, id))],
        ['delivered', 'queued', 'delivered'],
      );
    }),
  );
  assert.ok(transactions <= 10, `${transactions} transactions`);
  const [late] = await emails(1);
  await report(delivered(late as string));
  assert.equal((await emailRow(pool, late as string)).status, 'delivered');
});

test('a report that cannot be written does not fail the others', async () => {
  const ids = await emails(50);
  const report = gatherFeedback(pool);
  const results = await Promise.allSettled(
    ids.map((id, i) => report(delivered(id, i % 20 === 3 ? '\0' : 'delivered 1'))),
  );
  const failed = results.flatMap(({ status }, i) => (status === 'rejected' ? i : []));
  assert.deepEqual(failed, [3, 23, 43]);
  for (const [i, id] of ids.entries())
    assert.equal((await emailRow(pool, id)).status, failed.includes(i) ? 'queued' : 'delivered');
});
