import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { newId } from '../../src/lib/ids.ts';
import { makeEndpointDeps, removeEndpoint } from '../../src/accounts/webhooks.ts';
import { type Db, transaction } from '../../src/store/postgres/pool.ts';
import { enqueueEvents } from '../../src/store/webhooks/events.ts';
import { changeEndpoint, findEndpoint, insertEndpoint, rotateSecret } from '../../src/store/webhooks/endpoints.ts';
import { organizationFixture } from '../support/organization.ts';
import { SECRET_KEY } from '../support/secret-key.ts';

const SECRET = Buffer.from('x');

const { pool, orgId } = await organizationFixture(10);

describe('an endpoint that is written to all the time', () => {
  const endpoint = async (): Promise<string> => {
    await pool.query('DELETE FROM webhook_endpoints');
    const id = newId('wh');
    await insertEndpoint(pool, orgId, { id, url: 'https://example.com/', description: null, events: [] }, SECRET);
    return id;
  };
  const write = (db: Db): Promise<void> => enqueueEvents(db, [{ org_id: orgId, type: 'suppression.added', data: {} }]);
  /** Runs a statement that fails when it has to wait for a lock for longer than a second. */
  const withoutWaiting = <T>(work: (client: Db) => Promise<T>): Promise<T> =>
    transaction(pool, async (client) => {
      await client.query(`SET LOCAL lock_timeout = '1s'`);
      return work(client);
    });

  test('can be changed, disabled and given a new secret while a transaction writes to it', async () => {
    const id = await endpoint();
    await transaction(pool, async (writer) => {
      await write(writer);
      const rotated = await withoutWaiting((client) => rotateSecret(client, orgId, id, Buffer.from('y'), 24));
      assert.equal(rotated?.id, id);
      const changed = await withoutWaiting((client) =>
        changeEndpoint(client, orgId, id, { url: 'https://example.org/', status: 'disabled' }),
      );
      assert.deepEqual([changed?.url, changed?.status], ['https://example.org/', 'disabled']);
    });
  });

  test('is deleted although transactions write to it all the time', async () => {
    const id = await endpoint();
    const intake = makeEndpointDeps(pool, () => undefined, [SECRET_KEY], []);
    let isDeleted = false;
    const deadline = Date.now() + 20_000;
    const writers = [0, 60, 120, 180].map(async (delay) => {
      await sleep(delay);
      while (!isDeleted && Date.now() < deadline) {
        await transaction(pool, async (writer) => {
          await write(writer);
          await sleep(250);
        });
      }
    });
    await sleep(300);
    const deleting = removeEndpoint(intake, orgId, id).then(() => (isDeleted = true));
    await Promise.race([deleting, ...writers]);
    assert.ok(isDeleted, 'it waits for the writers');
    await Promise.all(writers);
    assert.equal(await findEndpoint(pool, orgId, id), undefined);
  });
});
