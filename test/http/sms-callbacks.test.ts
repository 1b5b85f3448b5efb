import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { newId } from '../../src/lib/ids.ts';
import { connect } from '../store/chats.ts';
import { twilioRequest } from './provider-callbacks.ts';
import { allPages, assertRefused, CHAT_CALLBACKS, SECRET_KEY, startService, TIMESTAMP, useService } from './service.ts';

const PUBLIC_URL = 'https://mail.example/base';
const INBOUND_URL = `${PUBLIC_URL}/callbacks/twilio/inbound`;
const SERVICE = `MG${'0123456789abcdef'.repeat(2)}`;
const NUMBER = '+12025550142';
const PHONE = '+14165550123';

const service = await useService({ publicUrl: PUBLIC_URL });
const ours = await service.organization();
const theirs = await service.organization();
await addSender(service.pool, ours.id, NUMBER, []);
await addSender(service.pool, theirs.id, SERVICE, []);
for (const { call } of [ours, theirs]) {
  const webhook = { url: 'https://example.com/hook', events: ['sms.received'] };
  assert.equal((await call('POST', '/v1/webhooks', { json: webhook })).status, 201);
}

/** The fields of a callback as Twilio posts it (https://www.twilio.com/docs/messaging/guides/webhook-request). */
function inbound(text: string, fields: Record<string, string> = {}): Record<string, string> {
  const sid = `SM${randomBytes(16).toString('hex')}`;
  return { MessageSid: sid, SmsStatus: 'received', From: PHONE, To: NUMBER, Body: text, ...fields };
}

function post(
  fields: Record<string, string>,
  { token = CHAT_CALLBACKS.twilioAuthToken, url = INBOUND_URL, path = '/callbacks/twilio/inbound' } = {},
) {
  return service.call('POST', path, twilioRequest(url, fields, token));
}

async function received(text: string, fields?: Record<string, string>): Promise<void> {
  const { status, headers, text: body } = await post(inbound(text, fields));
  assert.deepEqual([status, headers['content-type'], body], [200, 'text/xml', '<Response/>']);
}

/** The data of events, oldest first. */
async function events(orgId: string): Promise<unknown[]> {
  const { rows } = await service.pool.query<{ type: string; data: unknown }>(
    'SELECT type, data FROM webhook_events WHERE org_id = $1 ORDER BY created_at, id',
    [orgId],
  );
  assert.ok(rows.every(({ type }) => type === 'sms.received'));
  return rows.map(({ data }) => data);
}

async function optOuts(): Promise<string[]> {
  const { rows } = await service.pool.query<{ pair: string }>(
    `SELECT concat_ws(' ', org_id, sender, recipient) AS pair FROM sms_opt_outs ORDER BY 1`,
  );
  return rows.map(({ pair }) => pair);
}

async function kept(): Promise<number> {
  const { rows } = await service.pool.query<{ count: number }>('SELECT count(*)::int AS count FROM provider_callbacks');
  return rows[0]?.count ?? 0;
}

describe('an inbound SMS', () => {
  it('is reported to the organization of its sender and wakes the relay', async () => {
    const [before, wakes] = [(await events(ours.id)).length, service.wakes()];
    await received('Grüße & <more>');
    const all = await events(ours.id);
    assert.deepEqual(all.slice(before), [{ from: PHONE, to: NUMBER, text: 'Grüße & <more>' }]);
    assert.equal(service.wakes(), wakes + 1);
    await received('Hi.', { To: '+12025550199', MessagingServiceSid: SERVICE });
    assert.deepEqual(await events(theirs.id), [{ from: PHONE, to: '+12025550199', text: 'Hi.' }]);
    assert.equal((await events(ours.id)).length, all.length);
  });

  it('with STOP opts the recipient out of that sender, until START; HELP changes nothing', async () => {
    await received(' Stop\n');
    const pair = `${ours.id} ${NUMBER} ${PHONE}`;
    assert.deepEqual(await optOuts(), [pair]);
    await received('stopall');
    await received('HELP');
    await received('START', { From: '+14165550199' });
    await received('START', { To: '+12025550199', MessagingServiceSid: SERVICE });
    assert.deepEqual(await optOuts(), [pair]);
    await received('Unstop');
    assert.deepEqual(await optOuts(), []);
  });

  it('with STOP to a number of a messaging service opts out of both, until START', async () => {
    const before = [(await events(ours.id)).length, (await events(theirs.id)).length];
    await received('STOP', { MessagingServiceSid: SERVICE });
    const pairs = [`${ours.id} ${NUMBER} ${PHONE}`, `${theirs.id} ${SERVICE} ${PHONE}`].sort();
    assert.deepEqual(await optOuts(), pairs);
    await received('START', { MessagingServiceSid: SERVICE });
    assert.deepEqual(await optOuts(), []);
    const [own = 0, other] = before;
    assert.deepEqual([(await events(ours.id)).length, (await events(theirs.id)).length], [own + 2, other]);
  });

  it('with a keyword that Twilio recognized opts out or in, with any text', async () => {
    const pair = `${ours.id} ${NUMBER} ${PHONE}`;
    await received('Baja', { OptOutType: 'STOP' });
    assert.deepEqual(await optOuts(), [pair]);
    await received('Ayuda', { OptOutType: 'HELP' });
    await received('START', { OptOutType: 'HELP' });
    assert.deepEqual(await optOuts(), [pair]);
    await received('Alta', { OptOutType: 'START' });
    assert.deepEqual(await optOuts(), []);
  });

  it('with REVOKE or OPTOUT opts out, whatever Twilio recognized', async () => {
    const pair = `${ours.id} ${NUMBER} ${PHONE}`;
    for (const fields of [{}, { OptOutType: '' }, { OptOutType: 'HELP' }]) {
      for (const text of ['REVOKE', 'OptOut', 'Opt out.']) {
        await received(text, fields);
        assert.deepEqual(await optOuts(), [pair], text);
        await received('START');
        assert.deepEqual(await optOuts(), []);
      }
    }
  });

  it('opts out at /callbacks/twilio too', async () => {
    const at = { path: '/callbacks/twilio', url: `${PUBLIC_URL}/callbacks/twilio` };
    assert.equal((await post(inbound('STOP'), at)).text, '<Response/>');
    assert.deepEqual(await optOuts(), [`${ours.id} ${NUMBER} ${PHONE}`]);
    assert.equal((await post(inbound('START'), at)).status, 200);
    assert.deepEqual(await optOuts(), []);
  });

  it('counts once, however often and late its callback is repeated', async () => {
    const [stop, before] = [inbound('STOP'), (await events(ours.id)).length];
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(stop)));
    assert.ok(answers.every(({ status }) => status === 200));
    await received('START');
    assert.equal((await post(stop)).status, 200);
    assert.deepEqual(await optOuts(), []);
    assert.equal((await events(ours.id)).length, before + 2);
  });

  it('is none if its receiver is a number of the chat app, whose token another organization may have', async () => {
    const id = newId('num');
    const sealed = chatSeal(SECRET_KEY).close(Buffer.from('own'), id);
    const own = await connect(service.pool, ours.id, 'twilio', sealed, id);
    const before = (await events(theirs.id)).length;
    const forged = inbound('STOP', { To: `whatsapp:${own.number}`, MessagingServiceSid: SERVICE });
    assert.equal((await post(forged, { token: 'own' })).status, 200);
    assert.deepEqual(await optOuts(), []);
    assert.equal((await events(theirs.id)).length, before);
  });

  it('is kept when no organization has the sender, or when it is none', async () => {
    const before = await kept();
    await received('STOP', { To: '+12025550198' });
    await received('Hi.', { From: `whatsapp:${PHONE}` });
    assert.equal(await kept(), before + 2);
    assert.deepEqual(await optOuts(), []);
  });

  it('is refused unless it is signed with the token of the settings for this URL', async () => {
    const fields = inbound('STOP');
    assertRefused(await post(fields, { token: 'another' }), 401, 'unauthorized');
    assertRefused(await post(fields, { url: `${PUBLIC_URL}/callbacks/twilio` }), 401, 'unauthorized');
    assertRefused(await service.call('POST', '/callbacks/twilio/inbound', { raw: 'Body=STOP' }), 401, 'unauthorized');
    const bare = await startService({
      publicUrl: PUBLIC_URL,
      chatCallbacks: { ...CHAT_CALLBACKS, twilioAuthToken: undefined },
    });
    try {
      const signed = { 'x-twilio-signature': `${'A'.repeat(27)}=` };
      assertRefused(
        await bare.call('POST', '/callbacks/twilio/inbound', { raw: 'Body=STOP', headers: signed }),
        401,
        'unauthorized',
      );
    } finally {
      await bare.close();
    }
    assert.deepEqual(await optOuts(), []);
  });
});

describe('GET /v1/sms/senders', () => {
  it('lists the senders of the organization page by page, latest first', async () => {
    const more = await service.organization();
    const other = SERVICE.replace('0', '1');
    await more.addSender('12345', ['US']);
    await more.addSender('+12025550160');
    await more.addSender(other, ['DE', 'AT']);
    const senders = await allPages(more, '/v1/sms/senders', 2);
    assert.deepEqual(
      senders.map(({ id, created_at, ...rest }) => {
        assert.match(String(id), /^snd_/);
        assert.match(String(created_at), TIMESTAMP);
        return rest;
      }),
      [
        { number: null, messaging_service_sid: other, countries: ['DE', 'AT'] },
        { number: '+12025550160', messaging_service_sid: null, countries: [] },
        { number: '12345', messaging_service_sid: null, countries: ['US'] },
      ],
    );
  });
});
