import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'node:test';
import { TemporalUnreachable } from '../../src/relay/errors.ts';
import { organizationFixture } from '../support/organization.ts';
import { eventually } from '../support/eventually.ts';
import { acceptMany } from '../store/mail.ts';
import { useRelays } from './harness.ts';

const { pool, orgId } = await organizationFixture(20);
const { start, isEmpty } = useRelays(pool);

describe('a relay', () => {
  const store = (n = 1) => acceptMany(pool, orgId, n);

  /** Who has the lease, if it was not released. */
  async function holder(): Promise<string | undefined> {
    return (await pool.query<{ holder: string }>('SELECT holder FROM relay_lease')).rows[0]?.holder;
  }

  test('stands by while another relay dispatches, and takes over when that one stops', async () => {
    const relays = Array.from({ length: 3 }, () => start());
    const ids = await store(1_000);
    for (const { wake } of relays) wake();
    await isEmpty();
    const [busy, ...others] = relays.filter((each) => each.rows.length > 0);
    assert.deepEqual(others, []);
    const first = await holder();
    await busy?.stop();
    assert.notEqual(await holder(), first);
    const later = await store(1);
    await isEmpty();
    assert.deepEqual(relays.flatMap((each) => each.ids()).sort(), [...ids, ...later]);
  });

  test('takes over from a relay that ended without releasing its lease', async () => {
    await pool.query(`INSERT INTO relay_lease (holder, expires_at) VALUES ('ended', now() + interval '1 hour')`);
    const [id] = await store();
    const { ids: dispatched } = start();
    await sleep(300);
    assert.deepEqual(dispatched(), []);
    await pool.query(`UPDATE relay_lease SET expires_at = now() WHERE holder = 'ended'`);
    await isEmpty();
    assert.deepEqual(dispatched(), [id]);
  });

  test('lets another relay take over while it cannot reach Temporal', async () => {
    const { warnings } = start(() => Promise.reject(new TemporalUnreachable('away')));
    const [id] = await store();
    await eventually('it has noticed', () => warnings().length === 1);
    await eventually('it has released the lease', async () => (await holder()) === undefined);
    const { ids: dispatched } = start();
    await isEmpty();
    assert.deepEqual(dispatched(), [id]);
  });
});
