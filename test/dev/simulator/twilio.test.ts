import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isTwilioSignature, readTwilioCallback } from '../../../src/providers/twilio/callbacks.ts';
import { ACCOUNT, chat, chatSimulator, FROM, twilioAt } from '../../providers/chat.ts';
import { receiver, awaitCallbacks } from './receiver.ts';

const MESSAGES = `/2010-04-01/Accounts/${ACCOUNT.accountSid}/Messages`;

/** Posts a form, or gets, with these credentials. */
async function call(url: string, form?: Record<string, string> | null, token = ACCOUNT.authToken) {
  const answer = await fetch(url, {
    headers: { authorization: `Basic ${Buffer.from(`${ACCOUNT.accountSid}:${token}`).toString('base64')}` },
    ...(form && { method: 'POST', body: new URLSearchParams(form) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const form = { From: `whatsapp:${FROM}`, To: 'whatsapp:+4915112345678', Body: 'Hi.' };

describe('Twilio’s API', { concurrency: true }, () => {
  for (const [fields, code] of [
    [{ To: '+4915112345678' }, 21211],
    [{ Body: 'x'.repeat(1_601) }, 21617],
    [{ ContentSid: 'HX1' }, 21655],
    [{ ContentSid: 'HX00000000000000000000000000000002' }, 21656],
  ] as const) {
    test(`refuses ${JSON.stringify(fields).slice(0, 60)} with ${code}`, async (t) => {
      const { chatUrl, inbox } = await chatSimulator(t);
      const { status, body } = await call(`${chatUrl}${MESSAGES}.json`, { ...form, ...fields });
      assert.deepEqual([status, body['status'], body['code']], [400, 400, code]);
      assert.equal(body['more_info'], `https://www.twilio.com/docs/errors/${code}`);
      assert.deepEqual(await inbox(), []);
    });
  }

  test('requires the token and the path of its account', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    assert.deepEqual((await call(`${chatUrl}${MESSAGES}.json`, form, 'wrong')).body['code'], 20003);
    assert.equal((await call(`${chatUrl}/v1/ContentAndApprovals`, null, 'wrong')).status, 401);
    assert.equal((await call(`${chatUrl}/2010-04-01/Accounts/AC2/Messages.json`, form)).status, 401);
    assert.equal((await fetch(`${chatUrl}${MESSAGES}.json`)).status, 401);
  });
});

describe('a message by Twilio', { concurrency: true }, () => {
  for (const [to, statuses] of Object.entries({
    '+49151123450000': ['sent', 'delivered'],
    '+49151123450001': ['undelivered'],
    '+49151123450002': ['sent', 'delivered', 'read'],
  })) {
    test(`to ${to} is reported as ${statuses.join(', ')}, signed`, async (t) => {
      const { hits, url } = await receiver(t);
      const { chatUrl } = await chatSimulator(t, { times: { report: 60 } });
      const message = chat({ text: 'Grüße' }, { to });
      const outcome = await twilioAt(chatUrl, { publicUrl: url }).send(message);
      assert.ok(outcome.kind === 'sent');
      await awaitCallbacks(hits, statuses.length);
      const forms = hits.map(({ body }) => new URLSearchParams(body.toString()));
      assert.deepEqual(forms.map((fields) => fields.get('MessageStatus')).sort(), statuses.toSorted());
      for (const [i, { headers, url: path }] of hits.entries()) {
        const fields = forms[i] as URLSearchParams;
        assert.equal(path, `/callbacks/twilio?m=${message.id}`);
        assert.match(String(headers['content-type']), /^application\/x-www-form-urlencoded/);
        const signature = String(headers['x-twilio-signature']);
        assert.equal(isTwilioSignature(ACCOUNT.authToken, url + path, fields, signature), true);
        const report = readTwilioCallback(fields, message.id);
        assert.equal(report?.providerMessageId, outcome.messageId);
        assert.equal(report.errorCode, report.change === 'failed' ? '63024' : undefined);
      }
      const report = await twilioAt(chatUrl).report?.(message, outcome.messageId);
      const last = readTwilioCallback(forms.at(-1) as URLSearchParams, message.id);
      assert.deepEqual({ ...report, endpoints: { from: message.from, to: message.to } }, last);
    });
  }
});
