import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { changeQuota } from '../../src/intake/quota.ts';
import { markDeleted } from '../../src/store/emails/attachments.ts';
import { diskStore } from '../../src/store/files/disk.ts';
import { FileStoreUnavailable } from '../../src/store/files/file-store.ts';
import { abandonReservations, deleteReservations } from '../../src/store/files/reservations.ts';
import { allIds } from '../store/files/store-contract.ts';
import { assertRefused, type Organization, startService, useService } from './service.ts';

const MAX_STORED_BYTES = 1_048_576;

const service = await useService({ organizationLimits: { storedBytes: MAX_STORED_BYTES } });

const file = (bytes = 10) => ({ filename: 'a.txt', content: Buffer.alloc(bytes, 'x').toString('base64') });
const storedBytes = async ({ id }: Organization): Promise<number> => {
  const text = 'SELECT bytes::float8 AS bytes FROM stored_bytes WHERE org_id = $1';
  return (await service.pool.query<{ bytes: number }>(text, [id])).rows[0]?.bytes ?? 0;
};
/** Ids of the files that `work` wrote to the store, including those that it removed. */
async function written(t: TestContext, work: () => Promise<void>): Promise<string[]> {
  const put = t.mock.method(service.files, 'put');
  await work();
  const ids = put.mock.calls.map(({ arguments: [id] }) => id);
  put.mock.restore();
  return ids;
}

describe('files of a request that is refused', () => {
  it('are never stored when the quota is used up', async (t) => {
    const ours = await service.organization();
    await changeQuota(service.pool, ours.id, 1);
    await ours.sent();
    const ids = await written(t, async () => {
      assertRefused(await ours.send({ attachments: [file()] }), 429, 'quota_exceeded');
    });
    assert.deepEqual([ids, await storedBytes(ours)], [[], 0]);
  });

  it('are never stored when the rate limit refuses the email, and 422 for an invalid file takes precedence', async (t) => {
    const limited = await startService({ perSecond: { requests: 0, mails: 0.001 } });
    t.after(limited.close);
    const ours = await limited.organization();
    const answers = [await ours.send(), await ours.send(), await ours.send({ attachments: [file()] })];
    assertRefused(answers.at(-1) as (typeof answers)[0], 429, 'rate_limit_exceeded');
    assert.deepEqual(await allIds(diskStore(limited.folder)), []);
    const bad = await ours.send({ attachments: [{ filename: 'a.txt', content: '?' }] });
    assertRefused(bad, 422, 'invalid_attachment', 'attachments.0.content');
  });

  it('are removed when the refusal comes after they were stored', async (t) => {
    const ours = await service.organization();
    // The hint before the files still sees one left; the statement that stores the email does not.
    await changeQuota(service.pool, ours.id, 1);
    const put = service.files.put;
    t.mock.method(service.files, 'put', async (id: string, content: Buffer) => {
      await ours.sent();
      return put(id, content);
    });
    assertRefused(await ours.send({ attachments: [file()] }), 429, 'quota_exceeded');
    assert.deepEqual(await allIds(service.files), []);
    assert.equal(await storedBytes(ours), 0);
    const { rowCount } = await service.pool.query('SELECT FROM file_reservations');
    assert.equal(rowCount, 0);
  });
});

describe('the bytes that an organization may store', () => {
  it('are a limit, and deleted files free capacity', async (t) => {
    const ours = await service.organization();
    const half = MAX_STORED_BYTES / 2;
    const id = await ours.sent({ attachments: [file(half - 10), file(10)] });
    await ours.sent({ attachments: [file(half)] });
    assert.equal(await storedBytes(ours), MAX_STORED_BYTES);
    const ids = await written(t, async () => {
      const message = 'an organization may have 1 MB of stored attachments; these would be more';
      assertRefused(await ours.send({ attachments: [file(1)] }), 409, 'limit_exceeded', undefined, message);
    });
    assert.deepEqual(ids, []);
    await ours.sent();
    await (await service.organization()).sent({ attachments: [file(half)] });
    const { rows } = await service.pool.query<{ id: string }>('SELECT id FROM attachments WHERE email_id = $1', [id]);
    await markDeleted(
      service.pool,
      rows.map((row) => row.id),
    );
    assert.equal(await storedBytes(ours), half);
    await ours.sent({ attachments: [file(half)] });
  });

  it('are not counted for files that the store fails to write; upkeep still removes these files', async (t) => {
    const ours = await service.organization();
    const put = t.mock.method(service.files, 'put', () => Promise.reject(new FileStoreUnavailable(new Error('full'))));
    const attachments = [file(MAX_STORED_BYTES / 2), file(MAX_STORED_BYTES / 2)];
    for (let i = 0; i < 2; i++) assertRefused(await ours.send({ attachments }), 503, 'unavailable');
    assert.equal(await storedBytes(ours), 0);
    const ids = put.mock.calls.map(({ arguments: [id] }) => String(id));
    put.mock.restore();
    await ours.sent({ attachments });
    assert.equal(await storedBytes(ours), MAX_STORED_BYTES);
    await service.pool.query(`UPDATE file_reservations SET created_at = now() - interval '2 hours'`);
    const abandoned = await abandonReservations(service.pool, 100);
    assert.deepEqual(abandoned.sort(), ids.sort());
    await deleteReservations(service.pool, abandoned);
    assert.equal(await storedBytes(ours), MAX_STORED_BYTES);
  });

  it('are exact for requests that come concurrently', async () => {
    const ours = await service.organization();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => ours.send({ attachments: [file(MAX_STORED_BYTES / 4)] })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 202, 202, 202, 409, 409, 409, 409]);
    assert.equal(await storedBytes(ours), MAX_STORED_BYTES);
  });
});
