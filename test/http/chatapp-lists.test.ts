import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { connectNumber } from './resources.ts';
import { allPages, assertRefused, bodyOf, type Organization, useService } from './service.ts';

type Json = Record<string, unknown>;
interface Page {
  readonly messages: (Json & { id: string })[];
  readonly next_cursor: string | null;
}

const ADA = '+14165550123';
const BOB = '+447400123456';

const service = await useService();
const ours = await service.organization();
const { number } = await connectNumber(ours);
/** Latest first, alternately to ADA and BOB; every third has failed. */
const all: { id: string; to: string; status: string }[] = [];
for (let i = 0; i < 12; i++) {
  const to = i % 2 ? BOB : ADA;
  all.unshift({ id: await send(ours, to), to, status: i % 3 ? 'queued' : 'failed' });
}
const failed = all.filter(({ status }) => status === 'failed').map(({ id }) => id);
await service.pool.query(
  `UPDATE chat_messages SET status = 'failed', error = 'Not on WhatsApp.', error_code = '63024' WHERE id = ANY ($1)`,
  [failed],
);
// Several are created in the same second, so that their ids decide the order.
await service.pool.query(`UPDATE chat_messages SET created_at = date_trunc('second', created_at)`);

async function send(by: Organization, to: string): Promise<string> {
  return bodyOf<{ id: string }>(await by.call('POST', '/v1/chatapp', { json: { to, text: 'Hi.' } }), 202).id;
}

async function page(query: string): Promise<Page> {
  return bodyOf<Page>(await ours.call('GET', `/v1/chatapp?${query}`), 200);
}

async function idsOf(query: string, limit: number, by = ours): Promise<string[]> {
  return (await allPages<{ id: string }>(by, `/v1/chatapp?${query}`, limit)).map(({ id }) => id);
}

describe('GET /v1/chatapp', () => {
  const plus = encodeURIComponent(ADA);
  for (const [query, wanted] of [
    ['', () => true],
    ['status=failed', ({ status }) => status === 'failed'],
    ['status=read', () => false],
    [`to=${plus}`, ({ to }) => to === ADA],
    [`to=${encodeURIComponent('+44 (0)7400 123456')}`, ({ to }) => to === BOB],
    [`to=${plus}&status=failed`, ({ to, status }) => to === ADA && status === 'failed'],
    ['to=%2B14165550199', () => false],
  ] as [string, (message: (typeof all)[number]) => boolean][]) {
    it(`${query || 'without filters'}: lists each message once, latest first, in pages of any length`, async () => {
      const expected = all.filter(wanted).map(({ id }) => id);
      for (const limit of [1, 2, 5, 100]) assert.deepEqual(await idsOf(query, limit), expected);
    });
  }

  it('contains the metadata, status and error of a message, and no content', async () => {
    const { messages } = await page('status=failed&limit=1');
    const { created_at, last_event_at, ...rest } = messages[0] as Json;
    const latest = all.find(({ status }) => status === 'failed');
    const head = { type: 'text', from: number, country: latest?.to === ADA ? 'CA' : 'GB' };
    assert.deepEqual(rest, { ...latest, ...head, error: 'Not on WhatsApp.', error_code: '63024' });
    assert.ok(created_at && last_event_at);
  });

  it('accepts a cursor only with the same filters and list', async () => {
    const { next_cursor: cursor } = await page('status=failed&limit=1');
    assert.equal((await page(`status=failed&limit=2&cursor=${cursor}`)).messages.length, 2);
    for (const path of [
      `/v1/chatapp?cursor=${cursor}`,
      `/v1/chatapp?status=queued&cursor=${cursor}`,
      `/v1/chatapp?status=failed&to=%2B14165550123&cursor=${cursor}`,
      `/v1/chatapp/numbers?cursor=${(await page('limit=1')).next_cursor}`,
    ]) {
      assertRefused(await ours.call('GET', path), 422, 'validation_error', 'cursor');
    }
    const { next_cursor: ofAda } = await page(`to=${plus}&limit=1`);
    assert.equal((await page(`to=${encodeURIComponent('+1 416 555 0123')}&cursor=${ofAda}`)).messages.length, 5);
  });

  it('filters by recipient within an organization', async () => {
    const theirs = await service.organization();
    await connectNumber(theirs);
    const id = await send(theirs, ADA);
    assert.deepEqual(await idsOf(`to=${plus}`, 50, theirs), [id]);
  });

  for (const [query, param] of [
    ['status=suppressed', 'status'],
    ['to=4165550123', 'to'],
  ] as const) {
    it(`422 at ${param}: ${query}`, async () => {
      assertRefused(await ours.call('GET', `/v1/chatapp?${query}`), 422, 'validation_error', param);
    });
  }
});
