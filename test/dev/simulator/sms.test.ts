import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import {
  CALLBACK_RETRIES,
  isTwilioSignature,
  readInboundSms,
  readTwilioCallback,
} from '../../../src/providers/twilio/callbacks.ts';
import { twilioSms } from '../../../src/providers/twilio/sms.ts';
import { ACCOUNT, chat, chatSimulator, FROM, twilioAt } from '../../providers/chat.ts';
import { receiver, awaitCallbacks } from './receiver.ts';

const SERVICE = `MG${'0'.repeat(32)}`;

let count = 0;

function sms(to: string, from = FROM) {
  return chat({ text: 'Grüße' }, { id: `sms_${String(++count).padStart(26, '0')}`, from, to });
}

function smsAt(baseUrl: string, publicUrl: string | null = null) {
  return twilioSms({ ...ACCOUNT, baseUrl, publicUrl, timeoutSeconds: 30 });
}

describe('an SMS by Twilio', { concurrency: true }, () => {
  for (const [to, from, statuses] of [
    ['+49151123450000', FROM, ['sent', 'delivered']],
    ['+49151123450001', FROM, ['failed']],
    ['+49151123450002', '12345', ['sent', 'delivered']],
    ['+49151123450005', SERVICE, ['sent', 'undelivered']],
  ] as const) {
    test(`to ${to} is reported as ${statuses.join(', ')}, signed`, async (t) => {
      const { hits, url } = await receiver(t);
      const { chatUrl, inbox } = await chatSimulator(t, { times: { report: 60 } });
      const message = sms(to, from);
      const outcome = await smsAt(chatUrl, url).send(message);
      assert.ok(outcome.kind === 'sent');
      await awaitCallbacks(hits, statuses.length);
      const forms = hits.map(({ body }) => new URLSearchParams(body.toString()));
      assert.deepEqual(forms.map((fields) => fields.get('MessageStatus')).sort(), statuses.toSorted());
      for (const [i, { headers, url: path }] of hits.entries()) {
        const signature = String(headers['x-twilio-signature']);
        assert.equal(isTwilioSignature(ACCOUNT.authToken, url + path, forms[i] as URLSearchParams, signature), true);
      }
      const lastForm = forms.find((fields) => fields.get('MessageStatus') === statuses.at(-1));
      const last = readTwilioCallback(lastForm as URLSearchParams, message.id);
      const endpoints = { to, ...(from !== SERVICE && { from }) };
      assert.deepEqual({ ...(await smsAt(chatUrl).report?.(message, outcome.messageId)), endpoints }, last);
      assert.equal(last?.change, statuses.at(-1));
      const [shown = assert.fail()] = await inbox();
      const content = { type: 'text', text: 'Grüße', template: null, media: null };
      const { received_at } = shown;
      const { messageId: id } = outcome;
      assert.deepEqual(shown, { channel: 'sms', provider: 'twilio', id, from, to, ...content, received_at });
    });
  }

  test('fails once, always or because the recipient opted out', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    const provider = smsAt(chatUrl);
    const once = sms('+49151123450003');
    assert.deepEqual([(await provider.send(once)).kind, (await provider.send(once)).kind], ['busy', 'sent']);
    const always = sms('+49151123450004');
    assert.deepEqual([(await provider.send(always)).kind, (await provider.send(always)).kind], ['busy', 'busy']);
    const refused = await provider.send(sms('+49151123450006'));
    assert.deepEqual([refused.kind, 'code' in refused && refused.code], ['refused', '21610']);
  });

  test('is found apart from a chat-app message with the same text and numbers', async (t) => {
    const { chatUrl } = await chatSimulator(t);
    const [to, period] = ['+49151123450000', { fromMs: Date.now(), untilMs: Infinity }] as const;
    await twilioAt(chatUrl).send(chat({ text: 'Grüße' }, { to }));
    assert.equal(await smsAt(chatUrl).find?.(sms(to), period), undefined);
    for (const from of [FROM, SERVICE]) {
      const message = sms(to, from);
      const sent = await smsAt(chatUrl).send(message);
      assert.equal(await smsAt(chatUrl).find?.(message, period), sent.kind === 'sent' && sent.messageId);
    }
  });

  for (const [fields, code] of [
    [{ From: 'ACME' }, 21212],
    [{ From: FROM, To: 'whatsapp:+4915112345678' }, 21211],
    [{ MessagingServiceSid: 'MG1' }, 21212],
  ] as const) {
    test(`is refused with ${code} for ${JSON.stringify(fields)}`, async (t) => {
      const { chatUrl } = await chatSimulator(t);
      const answer = await fetch(`${chatUrl}/2010-04-01/Accounts/${ACCOUNT.accountSid}/Messages.json`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${ACCOUNT.accountSid}:${ACCOUNT.authToken}`).toString('base64')}`,
        },
        body: new URLSearchParams({ To: '+4915112345678', Body: 'Hi.', ...fields }),
      });
      assert.equal(((await answer.json()) as { code: number }).code, code);
    });
  }
});

describe('an answer to an SMS', { concurrency: true }, () => {
  /** A simulator that has one SMS, and where it posts inbound messages. */
  async function answered(t: TestContext, from: string, fragment = '', ...statuses: number[]) {
    const { hits, url } = await receiver(t, ...statuses);
    const account = { sid: ACCOUNT.accountSid, token: ACCOUNT.authToken };
    const { chatUrl, inboxUrl, inbox } = await chatSimulator(t, {
      twilioInbound: { url: `${url}/in?a=b${fragment}`, account },
      times: { callbackRetries: [1, 1] },
    });
    await smsAt(chatUrl).send(sms('+49151123450000', from));
    const [{ id } = assert.fail()] = await inbox();
    return { hits, url, page: `${inboxUrl}/${id}` };
  }

  for (const [from, to, messagingServiceSid] of [
    [FROM, FROM, null],
    [SERVICE, '+12025550100', SERVICE],
  ] as const) {
    test(`is posted, signed, from the page or by a program: ${from}`, async (t) => {
      const { hits, url, page } = await answered(t, from);
      assert.match(await (await fetch(page)).text(), /<form method="post" action="\/inbox\/SM[0-9a-f]{32}\/reply">/);
      const text = 'STOP & go';
      const posted = await fetch(`${page}/reply`, {
        method: 'POST',
        body: new URLSearchParams({ text }),
        redirect: 'manual',
      });
      assert.equal(posted.status, 303);
      const json = { 'content-type': 'application/json' };
      const called = await fetch(`${page}/reply`, { method: 'POST', headers: json, body: JSON.stringify({ text }) });
      const { id } = (await called.json()) as { id: string };
      await awaitCallbacks(hits, 2);
      for (const { body, headers, url: path } of hits) {
        const form = new URLSearchParams(body.toString());
        const signature = String(headers['x-twilio-signature']);
        assert.equal(isTwilioSignature(ACCOUNT.authToken, url + path, form, signature), true);
        const { providerMessageId, ...inbound } = readInboundSms(form) ?? assert.fail();
        assert.match(providerMessageId, /^SM[0-9a-f]{32}$/);
        assert.deepEqual(inbound, { from: '+49151123450000', to, messagingServiceSid, text, optOutType: null });
      }
      assert.ok(hits.some(({ body }) => body.toString().includes(id)));
    });
  }

  for (const [fragment, status, count] of [
    ['', 503, 1],
    ['', 0, 2],
    ['#rc=5', 503, 1],
    ['#rc=5&rp=4xx,ct', 503, 1],
    ['#rc=5&rp=4xx,ct', 404, 2],
    ['#rc=5&rp=5xx', 503, 2],
    [CALLBACK_RETRIES, 503, 2],
  ] as const) {
    const failure = status === 0 ? 'no response' : status;
    test(`is posted ${count} times if the first gets ${failure}, to a URL with "${fragment}"`, async (t) => {
      const { hits, url, page } = await answered(t, FROM, fragment, status, 200);
      await fetch(`${page}/reply`, { method: 'POST', body: new URLSearchParams({ text: 'STOP' }) });
      await awaitCallbacks(hits, count);
      assert.equal(hits.length, count);
      for (const { body, headers, url: path } of hits) {
        const signature = String(headers['x-twilio-signature']);
        const form = new URLSearchParams(body.toString());
        assert.ok(isTwilioSignature(ACCOUNT.authToken, url + path, form, signature));
      }
    });
  }

  test('is refused for an unknown message, without a text and to a chat-app message', async (t) => {
    const { page } = await answered(t, FROM);
    const status = async (url: string, body: object) =>
      (
        await fetch(`${url}/reply`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).status;
    assert.equal(await status(`${page}0`, { text: 'x' }), 404);
    assert.equal(await status(page, {}), 422);
    const { chatUrl, inboxUrl, inbox } = await chatSimulator(t);
    await twilioAt(chatUrl).send(chat());
    const [{ id } = assert.fail()] = await inbox();
    assert.equal(await status(`${inboxUrl}/${id}`, { text: 'x' }), 422);
  });
});
