import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { enqueueProviderRemovals, dueProviderRemovals } from '../../src/store/suppressions/provider-lists.ts';
import {
  addSuppressions,
  findSuppressed,
  findSuppressions,
  listSuppressions,
  removeSuppressions,
} from '../../src/store/suppressions/suppressions.ts';
import { useDatabase } from '../support/database.ts';
import { explainEach, readBy } from '../support/plans.ts';

const LARGE = `org_${'1'.repeat(26)}`;
const ROWS = 60_000;
const PAGE = 101;
/** Where nearly all rows match a filter, the planner may scan the few that do not. */
const FEW = 2_000;

const database = await useDatabase(2);
// A list of 60,000, of which 20 complained long ago, and 20,000 small ones.
await database.pool.query(
  `INSERT INTO suppressions (id, org_id, email, origin, created_at)
   SELECT 'sup_' || lpad(n::text, 26, '0'), CASE WHEN n <= $2 THEN $1 ELSE 'org_' || n % 500 END,
          'person' || n % ($2 - 1000) || '@example.net',
          CASE WHEN n <= 20 THEN 'complaint' WHEN n > $2 - 1000 AND n <= $2 THEN 'unsubscribe' ELSE 'bounce' END,
          timestamptz '2026-01-01' + n * interval '1 second'
   FROM generate_series(1, $2 + 20000) AS n`,
  [LARGE, ROWS],
);

const EMAIL = 'person500@example.net';
const DEEP = { created_at: '2026-01-01T08:00:00.000Z', id: `sup_${'0'.repeat(26)}` };

describe('no statement about suppressions reads much more than it shows', () => {
  const STATEMENTS: Readonly<Record<string, (db: Db) => Promise<unknown>>> = {
    ...Object.fromEntries(
      [null, DEEP].flatMap((place) =>
        [
          { origin: null, email: null },
          { origin: 'bounce' as const, email: null },
          { origin: 'complaint' as const, email: null },
          { origin: null, email: EMAIL },
          { origin: 'unsubscribe' as const, email: EMAIL },
        ].map((filters) => [
          `list of ${JSON.stringify(filters)}, ${place ? 'deep' : 'first'} page`,
          (db: Db) => listSuppressions(db, LARGE, filters, place, PAGE),
        ]),
      ),
    ),
    'one by address': (db) => findSuppressions(db, LARGE, [EMAIL]),
    'one by id': (db) => findSuppressions(db, LARGE, [`sup_${'77'.padStart(26, '0')}`]),
    'suppressed recipients of an email': (db) => findSuppressed(db, [{ org_id: LARGE, email: EMAIL }]),
    removal: (db) => removeSuppressions(db, LARGE, EMAIL, null),
    'request a removal at the provider': (db) => enqueueProviderRemovals(db, LARGE, ['nobody@example.net']),
    'due removals at the provider': (db) => dueProviderRemovals(db, 50),
  };

  it('by generic and by custom plans', async () => {
    await database.pool.query('VACUUM ANALYZE suppressions');
    await explainEach(database.pool, Object.entries(STATEMENTS), (steps, message) => {
      for (const node of steps) {
        if (node['Relation Name'] === 'suppressions') assert.notEqual(node['Node Type'], 'Seq Scan', message);
        assert.ok(readBy(node) <= FEW, message);
      }
    });
  });
});

describe('a suppression', () => {
  const entry = (fields: object) => ({
    id: newId('sup'),
    org_id: 'org_x',
    email: 'A@Example.net',
    origin: 'manual' as const,
    ...fields,
  });
  const origins = async () => {
    const found = await findSuppressions(database.pool, 'org_x', ['a@example.net']);
    return found.map(({ origin }) => origin);
  };

  it('is stored at most once for all mail and once for marketing email', async () => {
    for (const origin of ['unsubscribe', 'bounce', 'complaint', 'manual', 'provider', 'unsubscribe'] as const) {
      await addSuppressions(database.pool, [entry({ origin })]);
    }
    assert.deepEqual(await origins(), ['bounce', 'unsubscribe']);
  });

  it('is removed only if its origin is one of those given', async () => {
    const remove = (named: readonly ('provider' | 'unsubscribe')[]) =>
      removeSuppressions(database.pool, 'org_x', 'a@example.net', named);
    assert.deepEqual(await remove(['provider']), []);
    const removed = await remove(['provider', 'unsubscribe']);
    assert.deepEqual(
      removed.map(({ email, origin }) => [email, origin]),
      [['a@example.net', 'unsubscribe']],
    );
    assert.deepEqual(await origins(), ['bounce']);
  });
});
