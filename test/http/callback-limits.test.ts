import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { ServiceError } from '../../src/domain/errors.ts';
import { makeCallbackLimits } from '../../src/intake/callback-limits.ts';
import { newId } from '../../src/lib/ids.ts';
import { deleteExcessCallbacks, keepCallback } from '../../src/store/emails/callbacks.ts';
import { callbacksDropped } from '../../src/telemetry/topics.ts';
import { acceptText, chatTimeline, connect } from '../store/chats.ts';
import { twilioRequest } from './provider-callbacks.ts';
import { type Organization, SECRET_KEY, useService } from './service.ts';

const PUBLIC_URL = 'https://mail.example/base';
const TOKEN = 'a token that its organization knows';
const INBOUND = '/callbacks/twilio/inbound';

/** Two callbacks, then one every 2 s. */
const callbackLimits = makeCallbackLimits({ perSecond: 0.5, perDay: 100 });
const service = await useService({ publicUrl: PUBLIC_URL, callbackLimits });
const ours = await service.organization();
const theirs = await service.organization();

/** Connects a number with the organization's own Twilio account. */
async function connectOwn({ id: orgId }: Organization): Promise<string> {
  const id = newId('num');
  const sealed = chatSeal(SECRET_KEY).close(Buffer.from(TOKEN), id);
  return (await connect(service.pool, orgId, 'twilio', sealed, id)).number;
}

async function post(fields: Record<string, string>, path = INBOUND): Promise<number> {
  return (await service.call('POST', path, twilioRequest(PUBLIC_URL + path, fields, TOKEN))).status;
}

/** Posts forms concurrently. @returns the number of responses of each status */
async function postMany(forms: Record<string, string>[], path = INBOUND): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const status of await Promise.all(forms.map((form) => post(form, path)))) {
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

async function storedOf(number: string): Promise<{ count: number; longest: number }> {
  const { rows } = await service.pool.query<{ count: number; longest: number }>(
    `SELECT count(*)::int AS count, coalesce(max(octet_length(body)), 0)::int AS longest
     FROM provider_callbacks WHERE number = $1`,
    [number],
  );
  return rows[0] as { count: number; longest: number };
}

async function countDropped(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const stop = callbacksDropped.listen(({ reason, count }) => (counts[reason] = (counts[reason] ?? 0) + count));
  await work();
  stop();
  return counts;
}

describe('callbacks that the own token of an organization signs', () => {
  it('are refused with 429 above 50 a second and above 100,000 a day', () => {
    const limits = makeCallbackLimits();
    const takeAll = (tokens: number): number => {
      for (let taken = 0; taken < tokens; taken++) {
        try {
          limits.take('+14165550123');
        } catch (error) {
          assert.ok(error instanceof ServiceError && error.code === 'rate_limit_exceeded');
          return taken;
        }
      }
      return tokens;
    };
    const burst = takeAll(10_000);
    assert.ok(burst >= 250 && burst < 10_000, String(burst));
    const daily = makeCallbackLimits({ perSecond: 1_000_000, perDay: 20 });
    for (let i = 0; i < 20; i++) daily.take('+14165550123');
    assert.throws(() => daily.take('+14165550123'), /20 a day/);
    daily.take('+14165550124');
  });

  it('are stored up to the limit, and only the beginning of each', async () => {
    const number = await connectOwn(ours);
    const form = { To: `whatsapp:${number}`, Body: 'ä'.repeat(10_000) };
    let statuses: Record<number, number> = {};
    const dropped = await countDropped(async () => {
      statuses = await postMany(Array<typeof form>(40).fill(form));
    });
    assert.ok((statuses[429] ?? 0) > 0, JSON.stringify(statuses));
    assert.deepEqual(dropped, { rate: statuses[429] });
    const { count, longest } = await storedOf(number);
    assert.equal(count, statuses[200]);
    assert.ok(longest <= 4_096 && longest > 4_090, String(longest));
  });

  it('are recorded as messages of users up to the limit', async () => {
    const number = await connectOwn(ours);
    const forms = Array.from({ length: 40 }, (_, i) => ({
      MessageSid: `SM${String(i).padStart(32, '0')}`,
      To: `whatsapp:${number}`,
      From: 'whatsapp:+14165550123',
      Body: 'Hi.',
    }));
    const statuses = await postMany(forms);
    const { rows } = await service.pool.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM chat_inbound WHERE number = $1',
      [number],
    );
    assert.ok((statuses[429] ?? 0) > 0, JSON.stringify(statuses));
    assert.equal(rows[0]?.count, statuses[200]);
  });

  it('are accepted without a limit if they report on messages, and do not limit another number', async () => {
    const [number, other] = [await connectOwn(ours), await connectOwn(theirs)];
    const id = await acceptText(service.pool, ours.id, number);
    const report = {
      MessageSid: `SM${'0'.repeat(32)}`,
      MessageStatus: 'sent',
      From: `whatsapp:${number}`,
      To: 'whatsapp:+4915123456789',
    };
    const statuses = await postMany(Array<typeof report>(40).fill(report), `/callbacks/twilio?m=${id}`);
    assert.deepEqual(statuses, { 200: 40 });
    assert.deepEqual(await chatTimeline(service.pool, id), ['queued', 'sent']);
    const unknown = { To: `whatsapp:${number}` };
    assert.ok(((await postMany(Array<typeof unknown>(40).fill(unknown)))[429] ?? 0) > 0);
    assert.equal(await post({ To: `whatsapp:${other}` }), 200);
    assert.equal((await storedOf(other)).count, 1);
  });

  it('are kept up to 1,000 of a number, also if they arrive concurrently', async () => {
    const owner = { org_id: ours.id, number: '+14165550777' };
    await service.pool.query(
      `INSERT INTO provider_callbacks (provider, body, org_id, number)
       SELECT 'twilio', '/', $1, $2 FROM generate_series(1, 995)`,
      [owner.org_id, owner.number],
    );
    const dropped = await countDropped(() =>
      Promise.all(Array.from({ length: 20 }, () => keepCallback(service.pool, 'twilio', '/', owner))),
    );
    assert.deepEqual(dropped, { number: 15 });
    assert.equal((await storedOf(owner.number)).count, 1_000);
  });

  it('are neither deleted nor counted by the erasure of another organization', async () => {
    const number = await connectOwn(theirs);
    const named = { To: `whatsapp:${number}`, Body: 'write to Ada@example.net, please' };
    assert.equal(await post(named), 200);
    const erase = async (organization: Organization) => {
      const answer = await organization.call('POST', '/v1/erasures', { json: { email: 'ada@example.net' } });
      return (answer.body as { report: { provider_callbacks: number } }).report.provider_callbacks;
    };
    assert.equal(await erase(ours), 0);
    assert.equal((await storedOf(number)).count, 1);
    assert.equal(await erase(theirs), 1);
    assert.equal((await storedOf(number)).count, 0);
  });
});

describe('callbacks of providers', () => {
  it('are cut after 64 kB', async () => {
    await keepCallback(service.pool, 'meta', '€'.repeat(100_000));
    const { rows } = await service.pool.query<{ body: string }>(
      `SELECT body FROM provider_callbacks WHERE provider = 'meta' ORDER BY id DESC LIMIT 1`,
    );
    assert.equal(rows[0]?.body, '€'.repeat(21_845));
  });

  it('are deleted from the oldest on if they exceed the bytes that are kept', async () => {
    await service.pool.query('DELETE FROM provider_callbacks');
    for (const letter of 'abcde') await keepCallback(service.pool, 'postmark', letter.repeat(1_000));
    const dropped = await countDropped(async () => {
      assert.equal(await deleteExcessCallbacks(service.pool, 1, 3_000), 1);
      assert.equal(await deleteExcessCallbacks(service.pool, 10, 3_000), 1);
      assert.equal(await deleteExcessCallbacks(service.pool, 10, 3_000), 0);
    });
    assert.deepEqual(dropped, { size: 2 });
    const { rows } = await service.pool.query<{ first: string }>(
      'SELECT left(body, 1) AS first FROM provider_callbacks ORDER BY id',
    );
    assert.deepEqual(
      rows.map(({ first }) => first),
      ['c', 'd', 'e'],
    );
  });
});
