import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { transaction } from '../../src/store/postgres/pool.ts';
import { addDelivery } from '../../src/store/webhooks/deliveries.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { type Health, leaseEndpoints, releaseEndpoint, renewLeases } from '../../src/store/webhooks/leases.ts';
import { organizationFixture } from '../support/organization.ts';
import { explaining, flat, type PlanNode, readBy } from '../support/plans.ts';

const { pool, orgId } = await organizationFixture(10);
const ENDPOINT_URL = 'https://example.com/';
const NOTHING: Health = { url: ENDPOINT_URL, hasSuccess: false, hasFailure: false, hasRepeatedFailure: false };

describe('leases on endpoints', () => {
  beforeEach(() => pool.query('TRUNCATE webhook_endpoints, webhook_deliveries'));

  async function endpoint({ isDue = true } = {}): Promise<string> {
    const id = newId('wh');
    const fields = { id, url: ENDPOINT_URL, description: null, events: [] };
    await insertEndpoint(pool, orgId, fields, Buffer.from('x'));
    if (isDue) await addDelivery(pool, id, { id: newId('evt'), type: 'webhook.test', data: {} });
    return id;
  }
  const endpoints = async (count: number): Promise<string[]> => {
    const ids: string[] = [];
    for (let i = 0; i < count; i++) ids.push(await endpoint());
    return ids.toSorted();
  };
  const set = (id: string, assignments: string) =>
    pool.query(`UPDATE webhook_endpoints SET ${assignments} WHERE id = $1`, [id]);
  const lease = async (holder: string, limit = 100): Promise<string[]> =>
    (await leaseEndpoints(pool, holder, '', 100, limit)).ids;
  const failingSince = async (id: string) => {
    const { rows } = await pool.query<{ failing_since: string | null }>(
      'SELECT failing_since FROM webhook_endpoints WHERE id = $1',
      [id],
    );
    return rows[0]?.failing_since ?? null;
  };

  test('are taken of enabled endpoints with a due delivery', async () => {
    const [due, later, disabled] = [await endpoint(), await endpoint(), await endpoint()];
    await endpoint({ isDue: false });
    await pool.query(`UPDATE webhook_deliveries SET next_attempt_at = now() + interval '5 s' WHERE endpoint_id = $1`, [
      later,
    ]);
    await set(disabled, `status = 'disabled'`);
    await pool.query(`INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, created_at, next_attempt_at)
      VALUES ('whd_0', 'wh_deleted', 'evt_0', 'webhook.test', now(), now())`);
    assert.deepEqual(await lease('a'), [due]);
  });

  test('have one holder, until they lapse or are released', async () => {
    const [first = '', second = ''] = await endpoints(2);
    assert.deepEqual(await lease('a'), [first, second]);
    assert.deepEqual(await lease('b'), []);
    assert.deepEqual(await lease('a'), [], 'also for the holder itself');
    await releaseEndpoint(pool, 'b', first, NOTHING);
    assert.deepEqual(await lease('b'), [], 'only the holder releases a lease');
    await releaseEndpoint(pool, 'a', first, NOTHING);
    await set(second, `leased_until = now() - interval '1 s'`);
    assert.deepEqual((await lease('b')).toSorted(), [first, second]);
    assert.deepEqual(await renewLeases(pool, 'a', [first, second]), [], 'the former holder cannot renew them');
  });

  test('are renewed by their holder, except those that another transaction changes', async () => {
    const [first = '', second = ''] = await endpoints(2);
    await lease('a');
    await pool.query(`UPDATE webhook_endpoints SET leased_until = now() - interval '1 s'`);
    await transaction(pool, async (client) => {
      await client.query(`UPDATE webhook_endpoints SET url = 'https://example.org/' WHERE id = $1`, [second]);
      assert.deepEqual(await renewLeases(pool, 'a', [first, second]), [first]);
      assert.deepEqual(await lease('b'), [], 'nor is such an endpoint leased');
    });
    assert.deepEqual(await lease('b'), [second]);
    assert.deepEqual(await renewLeases(pool, 'a', []), []);
  });

  test('are taken in turn: the next call continues after the last endpoint', async () => {
    const ids = await endpoints(7);
    const turns: string[][] = [];
    let next: string | null = '';
    do {
      const turn: { ids: string[]; next: string | null } = await leaseEndpoints(pool, 'a', next, 3, 2);
      turns.push(turn.ids);
      next = turn.next;
    } while (next !== null && turns.length < 10);
    assert.deepEqual(turns.flat(), ids);
    assert.deepEqual(
      turns.map(({ length }) => length),
      [2, 2, 2, 1],
    );
    await pool.query('UPDATE webhook_endpoints SET leased_until = NULL');
    await pool.query(`UPDATE webhook_deliveries SET next_attempt_at = now() + interval '1 h' WHERE endpoint_id < $1`, [
      ids[6],
    ]);
    assert.deepEqual(
      await leaseEndpoints(pool, 'a', '', 3, 2),
      { ids: [], next: ids[2] },
      'endpoints that are not due',
    );
  });

  test('are released with the health of the endpoint', async () => {
    const [id = ''] = await endpoints(1);
    const release = async (health: Partial<Health>) => {
      await lease('a');
      await releaseEndpoint(pool, 'a', id, { ...NOTHING, ...health });
      return failingSince(id);
    };
    assert.equal(await release({}), null);
    const since = await release({ hasFailure: true });
    assert.ok(since);
    assert.deepEqual(await release({ hasFailure: true }), since, 'the first failure counts');
    assert.deepEqual(await release({}), since);
    assert.equal(await release({ hasFailure: true, hasSuccess: true }), null);
    const former = 'https://example.org/';
    assert.equal(await release({ url: former, hasFailure: true }), null, 'failures of a former URL do not count');
    assert.ok(await release({ hasFailure: true }));
    assert.ok(await release({ url: former, hasSuccess: true }), 'nor do its successes');
    assert.equal(await release({ hasSuccess: true }), null);
    await lease('a');
    await set(id, `status = 'disabled'`);
    await releaseEndpoint(pool, 'a', id, { ...NOTHING, hasFailure: true });
    assert.equal(await failingSince(id), null, 'a disabled endpoint is left as it was');
  });

  test('are found without reading the deliveries or endpoints one by one', async () => {
    await pool.query(
      `INSERT INTO webhook_endpoints (id, org_id, url, events, secret)
       SELECT 'wh_' || lpad(i::text, 5, '0'), $1, 'https://example.com/', '{}', '' FROM generate_series(1, 3000) AS i`,
      [orgId],
    );
    await pool.query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, event_id, type, created_at, next_attempt_at)
       SELECT 'whd_' || i, 'wh_' || lpad((i % 5 * 100)::text, 5, '0'), 'evt_' || i, 'webhook.test', now(), now()
       FROM generate_series(1, 5000) AS i`,
    );
    for (const analyze of [false, true]) {
      if (analyze) await pool.query('ANALYZE webhook_endpoints, webhook_deliveries');
      for (const mode of ['force_generic_plan', 'force_custom_plan']) {
        const client = await pool.connect();
        const plans: PlanNode[] = [];
        try {
          await client.query(`SET plan_cache_mode = ${mode}`);
          await leaseEndpoints(explaining(client, plans), mode, '', 100, 100);
          await renewLeases(explaining(client, plans), mode, ['wh_00100', 'wh_00200']);
        } finally {
          client.release(true);
        }
        for (const node of plans.flatMap(flat))
          assert.ok(readBy(node) <= 50, `${mode}: ${readBy(node)} rows by ${JSON.stringify(node)}`);
        await pool.query('UPDATE webhook_endpoints SET leased_until = NULL WHERE leased_until IS NOT NULL');
      }
    }
  });
});
