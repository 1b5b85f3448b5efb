import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QueryConfig } from 'pg';
import type { Feedback } from '../../src/domain/email/feedback.ts';
import { gatherFeedback } from '../../src/projection/gathered-feedback.ts';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { accept, emailRow, newEmail, organization, timeline } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(10);
const orgId = await organization(pool);

async function emails(n: number): Promise<string[]> {
  const made = Array.from({ length: n }, () => newEmail());
  await accept(pool, orgId, made);
  return made.map(({ id }) => id);
}

function delivered(emailId: string, dedupeKey = 'delivered 1'): Feedback {
  return { emailId, change: 'delivered', recipient: 'person@example.net', dedupeKey };
}

test('reports that arrive together share statements, and each is there when it resolves', async () => {
  const ids = await emails(500);
  let statements = 0;
  const counted = {
    query: (query: QueryConfig) => {
      statements++;
      return pool.query(query);
    },
  } as unknown as Pool;
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
  assert.ok(statements <= 10, `${statements} statements`);
  const [late] = await emails(1);
  await report(delivered(late as string));
  assert.equal((await emailRow(pool, late as string)).status, 'delivered');
});

test('a report that cannot be written fails alone', async () => {
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

test('while the database is away all of them fail, and the next one is written again', async (t) => {
  const [first, second] = await emails(2);
  const away = makePool('postgres://nobody@127.0.0.1:1/none', 'test', 2, () => undefined);
  t.after(() => away.end());
  const pools = [away, away, pool];
  const changing = {
    query: (query: QueryConfig) => (pools.shift() ?? pool).query(query),
  } as unknown as Pool;
  const report = gatherFeedback(changing);
  const results = await Promise.allSettled([report(delivered(first as string)), report(delivered(second as string))]);
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  await report(delivered(first as string));
  assert.equal((await emailRow(pool, first as string)).status, 'delivered');
});
