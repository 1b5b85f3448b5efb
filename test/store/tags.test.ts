import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startAggregatingCounts } from '../../src/intake/aggregate-counts.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { aggregateTags, listTags } from '../../src/store/emails/tags.ts';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { accept, acceptOne, DOMAIN, newEmail, organization } from './mail.ts';

const database = await useDatabase(10);

const KIND = { name: 'kind', value: 'receipt' };
let count = 0;

/** A new organization with its own domain, and the fields that its emails need. */
async function newOrganization() {
  const domain = `o${++count}.${DOMAIN}`;
  const from = { from_domain: domain, from: `hello@${domain}` };
  return { orgId: await organization(database.pool, domain), from };
}

const additions = async (): Promise<number> => {
  const { rows } = await database.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM tag_additions');
  return rows[0]?.n ?? 0;
};

describe('counts of tags', () => {
  it('are the same before, during and after aggregation', async () => {
    const { orgId, from } = await newOrganization();
    const one = { name: 'n', value: '1' };
    await accept(database.pool, orgId, [
      newEmail({ ...from, tags: [KIND, one] }),
      newEmail({ ...from, tags: [KIND] }),
      newEmail(from),
    ]);
    const expected = [
      { ...KIND, count: 2 },
      { ...one, count: 1 },
    ];
    assert.deepEqual(await listTags(database.pool, orgId, null, 100), expected);
    assert.equal(await aggregateTags(database.pool, 1), 1);
    assert.deepEqual(await listTags(database.pool, orgId, null, 100), expected);
    while ((await aggregateTags(database.pool, 1)) > 0)
      assert.deepEqual(await listTags(database.pool, orgId, null, 100), expected);
    assert.equal(await additions(), 0);
    await acceptOne(database.pool, orgId, { ...from, tags: [KIND] });
    assert.deepEqual(await listTags(database.pool, orgId, null, 100), [{ ...KIND, count: 3 }, expected[1]]);
  });

  it('are exact for every reader while many send and several aggregate', async () => {
    const { orgId, from } = await newOrganization();
    let sent = 0;
    let sending = true;
    const send = async () => {
      for (let n = 0; n < 60; n++) {
        await acceptOne(database.pool, orgId, { ...from, tags: [KIND] });
        sent++;
      }
    };
    const aggregate = async () => {
      while (sending) await aggregateTags(database.pool, 7);
    };
    const read = async () => {
      while (sending) {
        const before = sent;
        const [tag] = await listTags(database.pool, orgId, null, 100);
        // Answered requests are counted; four more may be in flight.
        const found = tag?.count ?? 0;
        assert.ok(found >= before && found <= sent + 4, `${found} counted, ${before} to ${sent} sent`);
      }
    };
    const others = [aggregate(), aggregate(), read(), read()];
    await Promise.all([send(), send(), send(), send()]).finally(() => (sending = false));
    await Promise.all(others);
    assert.deepEqual(await listTags(database.pool, orgId, null, 100), [{ ...KIND, count: 240 }]);
  });
});

describe('accepting', () => {
  it('an email does not wait for a transaction with the same tags, nor for aggregation', async () => {
    const { orgId, from } = await newOrganization();
    await acceptOne(database.pool, orgId, { ...from, tags: [KIND] });
    await transaction(database.pool, async (batch) => {
      await accept(batch, orgId, [newEmail({ ...from, tags: [KIND] })]);
      await transaction(database.pool, async (aggregating) => {
        await aggregateTags(aggregating, 100);
        await transaction(database.pool, async (single) => {
          await single.query('SET LOCAL lock_timeout = 1');
          await acceptOne(single, orgId, { ...from, tags: [KIND] });
          assert.equal(await aggregateTags(single, 100), 0, 'only one transaction aggregates');
          assert.deepEqual(await listTags(single, orgId, null, 100), [{ ...KIND, count: 2 }]);
        });
      });
    });
    assert.deepEqual(await listTags(database.pool, orgId, null, 100), [{ ...KIND, count: 3 }]);
  });
});

describe('startAggregatingCounts', () => {
  it('aggregates additions until it is stopped', async () => {
    const { orgId, from } = await newOrganization();
    const errors: unknown[] = [];
    const stop = startAggregatingCounts(database.pool, (error) => errors.push(error));
    for (let round = 0; round < 2; round++) {
      await acceptOne(database.pool, orgId, { ...from, tags: [KIND] });
      await eventually('nothing is left to add', async () => (await additions()) === 0, 10_000);
    }
    await stop();
    await acceptOne(database.pool, orgId, { ...from, tags: [KIND] });
    assert.equal(await additions(), 1);
    assert.deepEqual(await listTags(database.pool, orgId, null, 100), [{ ...KIND, count: 3 }]);
    assert.deepEqual(errors, []);
  });

  it('reports the first of several failures and continues', async () => {
    let tries = 0;
    const reported: unknown[] = [];
    const failure = new Error('away');
    const pool = { query: () => (tries++ < 2 ? Promise.reject(failure) : database.pool.query('SELECT')) };
    const stop = startAggregatingCounts(pool as unknown as typeof database.pool, (error) => reported.push(error));
    await eventually('there is another round', () => tries > 2, 10_000);
    await stop();
    assert.deepEqual(reported, [failure]);
  });
});
