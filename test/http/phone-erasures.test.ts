import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { projectMessages } from '../../src/projection/messages.ts';
import { keepCallback } from '../../src/store/emails/callbacks.ts';
import { insertAudit } from '../../src/store/accounts/audit.ts';
import { chatHarness, ScriptedChat } from '../delivery/chat-harness.ts';
import { metaRequest } from './provider-callbacks.ts';
import { assertRefused, bodyOf, inFuture, useService } from './service.ts';

const PHONE = '+14165550123';
const DIGITS = PHONE.slice(1);
const LONGER = '+441416555012';
const USER_ID = 'CA.4711CanaryUser';
const WRITTEN = 'canary words of a user';

type Json = Record<string, unknown>;

const service = await useService();
const [ours, theirs] = [await service.organization(), await service.organization()];
const SENDERS = ['+12025550142', '+12025550143'] as const;
await ours.addSender(SENDERS[0]);
await theirs.addSender(SENDERS[1]);

const send = async (by: typeof ours, path: string, json: Json, headers = {}) =>
  String(bodyOf(await by.call('POST', path, { json, headers }), 202)['id']);
const sms = (by = ours, more: Json = {}, headers = {}) =>
  send(by, '/v1/sms', { to: PHONE, text: `canary text`, ...more }, headers);

/** Columns whose values contain a text, in any table, also in bytes. */
async function columnsWith(text: string): Promise<string[]> {
  const { rows } = await service.pool.query<{ table: string; column: string; type: string }>(
    `SELECT quote_ident(relname) AS table, quote_ident(attname) AS column, typname AS type
     FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid JOIN pg_type ON pg_type.oid = atttypid
     WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND attnum > 0 AND NOT attisdropped`,
  );
  const found: string[] = [];
  for (const { table, column, type } of rows) {
    const value = type === 'bytea' ? `encode(${column}, 'escape')` : `${column}::text`;
    const { rows: hits } = await service.pool.query(`SELECT FROM ${table} WHERE ${value} ILIKE $1 LIMIT 1`, [
      `%${text}%`,
    ]);
    if (hits.length > 0) found.push(`${table}.${column}`);
  }
  return found.sort();
}

async function erase(phone = PHONE): Promise<Record<string, number>> {
  const answer = await ours.call('POST', '/v1/erasures', { json: { phone } });
  const { report, ...rest } = bodyOf<{ report: Record<string, number> }>(answer, 200);
  assert.deepEqual(rest, { has_more: false, next_cursor: null });
  return report;
}

describe('erasing a telephone number', () => {
  it('leaves it in no column of any table, nor what its user has written', async () => {
    await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
    const meta = { number: '+447800000001', provider: 'meta', phone_number_id: 'canary-1', access_token: 'token' };
    await ours.call('POST', '/v1/chatapp/numbers', { json: meta });
    const received = {
      ...{ from: DIGITS, id: `wamid.${Buffer.from(DIGITS).toString('base64')}`, timestamp: '1773000000' },
      ...{ type: 'text', text: { body: WRITTEN }, user_id: USER_ID, from_user_id: USER_ID },
    };
    const contacts = [{ profile: { name: 'Canary Person' }, wa_id: DIGITS, user_id: USER_ID }];
    const value = { metadata: { phone_number_id: 'canary-1' }, contacts, messages: [received] };
    const body = JSON.stringify({ entry: [{ changes: [{ field: 'messages', value }] }] });
    assert.equal((await ours.call('POST', '/callbacks/meta', metaRequest(body))).status, 200);
    const ended = await sms(ours, {}, { 'idempotency-key': 'once' });
    const failed = await sms();
    const open = await sms(ours, { scheduled_at: inFuture({ hours: 1 }) });
    const toUser = await send(ours, '/v1/chatapp', { to: USER_ID, from: meta.number, text: 'canary text' });
    await projectMessages(service.pool, 'sent', [{ id: ended, provider: 'twilio', provider_message_id: 'SM1' }]);
    const error = `The number ${PHONE} is unknown; see https://x.example/?to=%2B${DIGITS}`;
    await projectMessages(service.pool, 'failed', [{ id: failed, error, dedupe_key: `${PHONE} failed` }]);
    await projectMessages(service.pool, 'sent', [{ id: toUser, provider: 'meta', provider_message_id: received.id }]);
    await service.pool.query(
      `INSERT INTO attempts (message_id, n, call, provider, outcome, detail) VALUES ($1, 1, 'c', 'twilio', 'refused', $2)`,
      [failed, error],
    );
    await service.pool.query(`INSERT INTO sms_opt_outs (org_id, sender, recipient) VALUES ($1, $2, $3)`, [
      ours.id,
      SENDERS[0],
      PHONE,
    ]);
    await service.pool.query(`UPDATE webhook_events SET payload = data::text WHERE org_id = $1`, [ours.id]);
    const system = { actor_kind: 'system', actor_id: 'test', action: 'sms.export' } as const;
    await insertAudit(service.pool, { ...system, org_id: ours.id, target: PHONE, detail: { to: PHONE } });
    await keepCallback(service.pool, 'twilio', new URLSearchParams({ From: `whatsapp:${PHONE}` }).toString());
    const other = await sms(ours, { to: LONGER });
    assert.ok((await columnsWith(DIGITS)).length >= 10, String(await columnsWith(DIGITS)));

    const report = await erase();
    const {
      messages,
      contents,
      contacts: people,
      received: texts,
      suppressions,
      provider_callbacks: callbacks,
    } = report;
    // A callback of an unknown organization is deleted, but not counted.
    assert.deepEqual([messages, contents, people, texts, suppressions, callbacks], [4, 3, 1, 1, 1, 0]);
    for (const text of [DIGITS, received.id, USER_ID, WRITTEN, 'Canary Person']) {
      assert.deepEqual(await columnsWith(text), [], text);
    }
    const shown = bodyOf<Json>(await ours.call('GET', `/v1/sms/${ended}`), 200);
    assert.match(String(shown['to']), /^erased-[0-9a-f]{16}$/);
    assert.equal(shown['text'], null);
    assert.equal(
      bodyOf<Json>(await ours.call('GET', `/v1/sms/${open}`), 200)['text'],
      'canary text',
      'still to be sent',
    );
    assert.equal(bodyOf<Json>(await ours.call('GET', `/v1/sms/${other}`), 200)['to'], LONGER);
  });

  it('changes nothing if it is repeated', async () => {
    for (const [what, count] of Object.entries(await erase())) assert.equal(count, 0, what);
  });

  it('suppresses pending and later messages to the number, but not those of other organizations', async () => {
    const provider = new ScriptedChat();
    const { deliverSms, deliver } = chatHarness(service.pool, provider, { contents: service.deps.contents });
    const later = await sms();
    const { rows } = await service.pool.query<{ id: string }>(
      `UPDATE chat_messages SET scheduled_at = now() - interval '1 second' WHERE status = 'scheduled' RETURNING id`,
    );
    assert.equal(rows.length, 1);
    for (const id of [later, ...rows.map((row) => row.id)]) {
      assert.deepEqual(await deliverSms(id), { state: 'ended', status: 'suppressed' });
    }
    const chat = await send(ours, '/v1/chatapp', { to: PHONE, text: 'Hi.' });
    assert.deepEqual(await deliver(chat), { state: 'ended', status: 'failed' });
    assert.deepEqual(provider.given, []);
    assert.equal((await deliverSms(await sms(theirs))).state, 'ended');
    assert.deepEqual(
      provider.given.map(({ to }) => to),
      [PHONE],
    );
    await erase();
  });

  it('takes either an address or a number', async () => {
    for (const [json, param] of [
      [{}, 'email'],
      [{ email: null, phone: null }, 'email'],
      [{ email: 'a@example.net', phone: PHONE }, 'phone'],
      [{ phone: '4165550123' }, 'phone'],
      [{ phone: PHONE, cursor: 'x' }, 'cursor'],
    ] as const) {
      assertRefused(await ours.call('POST', '/v1/erasures', { json }), 422, 'validation_error', param);
    }
  });
});
