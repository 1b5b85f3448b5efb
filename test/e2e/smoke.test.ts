import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sendwright } from '../../client/index.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { emptyHome, startSendwright } from '../support/start.ts';

const SINGLES = 100;
const IN_BATCH = 300;

test('every email of a short load, single emails and a batch, is sent exactly once', async (t) => {
  const started = await startSendwright(t, await emptyHome());
  const { base_url: baseUrl, api_key: apiKey, from, inbox_url: inbox, database_url: url } = await started.dev();
  const { emails } = new Sendwright({ baseUrl, apiKey });
  const emailTo = (to: string) => ({ from, to, subject: 'Smoke', text: 'Hi there.' });
  const singles = Array.from({ length: SINGLES }, (_, i) => emailTo(`smoke-single-${i}@example.net`));
  const members = Array.from({ length: IN_BATCH }, (_, i) => emailTo(`smoke-batch-${i}@example.net`));
  await Promise.all(singles.map((single) => emails.send(single)));
  const batch = await emails.batch(members);
  const pool = makePool(url, 'test', 1, () => undefined);
  t.after(() => pool.end());
  await eventually(
    'every email is delivered',
    async () => (await pool.query(`SELECT FROM emails WHERE status <> 'delivered' LIMIT 1`)).rowCount === 0,
    60_000,
  );
  const messages = (await (await fetch(`${inbox ?? ''}/messages?limit=1000`)).json()) as { to: string[] }[];
  const taken = messages.flatMap(({ to }) => to).filter((address) => address.startsWith('smoke-'));
  assert.deepEqual(taken.sort(), [...singles, ...members].map(({ to }) => to).sort());
  const { rows } = await pool.query(
    `SELECT (SELECT max(n) FROM attempts) AS calls, (SELECT count(*)::int FROM emails WHERE batch_id = $1) AS batch`,
    [batch.id],
  );
  assert.deepEqual(rows, [{ calls: 1, batch: IN_BATCH }]);
});
