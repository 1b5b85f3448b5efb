import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { InboundMessage } from '../../../src/domain/chat/inbound.ts';
import { isMetaSignature } from '../../../src/providers/meta/callbacks.ts';
import { readMetaInbound } from '../../../src/providers/meta/inbound.ts';
import { metaMedia } from '../../../src/providers/meta/media.ts';
import { isTwilioSignature } from '../../../src/providers/twilio/callbacks.ts';
import { readTwilioInbound } from '../../../src/providers/twilio/inbound.ts';
import { twilioMedia } from '../../../src/providers/twilio/media.ts';
import { makePublicFetch } from '../../../src/public-fetch/fetch.ts';
import { userIdOf } from '../../../dev/simulator/users.ts';
import { ACCESS_TOKEN, ACCOUNT, chat, chatSimulator, metaAt, PHONE_NUMBER_ID, twilioAt } from '../../providers/chat.ts';
import { type Hit, receiver, awaitCallbacks } from './receiver.ts';

const SECRET = 'app-secret';
const OURS = '+12025550142';
const ADA = '+14165550123';
const HIDDEN = 'US.13491208655302741918';
const PROVIDERS = ['twilio', 'meta'] as const;

async function start(t: TestContext) {
  const { hits, url } = await receiver(t);
  const simulator = await chatSimulator(t, {
    metaCallback: { url: `${url}/meta`, appSecret: SECRET },
    twilioInbound: { url: `${url}/twilio`, account: { sid: ACCOUNT.accountSid, token: ACCOUNT.authToken } },
    times: { report: 60_000 },
  });
  const post = async (path: string, json: object) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(simulator.chatUrl + path, { method: 'POST', headers, body: JSON.stringify(json) });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };
  return { ...simulator, hits, url, post };
}

/** Reads a callback as the API does. */
function read(hit: Hit | undefined, url: string): { to: string; message: InboundMessage } {
  assert.ok(hit);
  const isMeta = hit.url === '/meta';
  const form = new URLSearchParams(hit.body.toString());
  const header = (name: string) => hit.headers[name] as string;
  assert.ok(
    isMeta
      ? isMetaSignature(SECRET, hit.body, header('x-hub-signature-256'))
      : isTwilioSignature(ACCOUNT.authToken, `${url}/twilio`, form, header('x-twilio-signature')),
  );
  const callback = isMeta ? readMetaInbound(hit.body)[0] : readTwilioInbound(form);
  const event = callback?.events[0];
  assert.ok(event?.kind === 'message');
  return {
    to: callback?.provider === 'meta' ? `+${callback.phoneNumberId}` : (callback?.number ?? ''),
    message: event,
  };
}

for (const provider of PROVIDERS) {
  describe(`a user at ${provider}`, { concurrency: true }, () => {
    test('writes with its number and id, or without its number', async (t) => {
      const { hits, url, post } = await start(t);
      const { status, body } = await post('/simulator/whatsapp', { provider, from: ADA, to: OURS, text: 'Hi.' });
      assert.equal(status, 202);
      await awaitCallbacks(hits, 1);
      const { to, message } = read(hits[0], url);
      assert.equal(to, OURS);
      assert.deepEqual([message.providerMessageId, message.type, message.text], [body['id'], 'text', 'Hi.']);
      assert.deepEqual([message.user.number, message.user.userId], [ADA, userIdOf(ADA)]);
      await post('/simulator/whatsapp', { provider, from: HIDDEN, to: OURS, text: 'Hi.' });
      await awaitCallbacks(hits, 2);
      const { user } = read(hits[1], url).message;
      assert.deepEqual([user.number, user.userId], [null, HIDDEN]);
    });

    for (const [type, content] of Object.entries({
      button: { button: { text: 'Yes', payload: 'yes' }, reply_to: 'sent-1' },
      location: { location: { latitude: 48.2, longitude: 16.4, name: 'Wien' } },
      reaction: { reaction: { emoji: '👍', message_id: 'sent-1' } },
    })) {
      test(`sends a ${type}`, async (t) => {
        const { hits, url, post } = await start(t);
        await post('/simulator/whatsapp', { provider, from: ADA, to: OURS, ...content });
        await awaitCallbacks(hits, 1);
        assert.equal(read(hits[0], url).message.type, type);
      });
    }

    test('sends a file, which is fetched with the token of the number', async (t) => {
      const { hits, url, chatUrl, post } = await start(t);
      const file = { content_type: 'image/png', content: Buffer.from('a picture').toString('base64'), caption: 'Look' };
      await post('/simulator/whatsapp', { provider, from: ADA, to: OURS, file });
      await awaitCallbacks(hits, 1);
      const { type, text, media } = read(hits[0], url).message;
      assert.deepEqual([type, text, media?.contentType], ['image', 'Look', 'image/png']);
      const fetchPublic = makePublicFetch({ allowedCidrs: ['127.0.0.0/8'] });
      const reference = media?.reference ?? '';
      const fetchWith =
        provider === 'meta'
          ? metaMedia(chatUrl, ACCESS_TOKEN, reference)
          : twilioMedia({ ...ACCOUNT, baseUrl: chatUrl }, reference);
      const content = await fetchWith((link, authorization) =>
        fetchPublic(link, { left: 1_000 }, undefined, authorization),
      );
      assert.equal(content.toString(), 'a picture');
    });

    test('answers a message in the inbox', async (t) => {
      const { hits, url, chatUrl, inbox, post } = await start(t);
      await (provider === 'meta' ? metaAt(chatUrl) : twilioAt(chatUrl)).send(chat({ text: 'x' }, { to: HIDDEN }));
      const [sent] = await inbox();
      assert.equal((await post(`/inbox/${encodeURIComponent(sent?.id ?? '')}/reply`, { text: 'Yes.' })).status, 202);
      await awaitCallbacks(hits, 1);
      const { to, message } = read(hits[0], url);
      assert.equal(to, provider === 'meta' ? `+${PHONE_NUMBER_ID}` : sent?.from);
      assert.deepEqual([message.text, message.repliesTo, message.user.userId], ['Yes.', sent?.id, HIDDEN]);
    });

    test('repeats its message as the switches require', async (t) => {
      const { hits, behave, post } = await start(t);
      await behave({ repeat_reports: 2 });
      await post('/simulator/whatsapp', { provider, from: ADA, to: OURS, text: 'Hi.' });
      await awaitCallbacks(hits, 3);
      assert.equal(new Set(hits.map(({ body }) => body.toString())).size, 1);
    });
  });
}

test('a message without a sender, with unknown fields or for a provider without a URL is refused', async (t) => {
  const { post } = await start(t);
  for (const json of [
    { to: OURS },
    { from: 'you', to: OURS },
    { from: ADA, to: OURS, x: 1 },
    { from: ADA, to: OURS, sent_at: 'x' },
  ]) {
    assert.equal((await post('/simulator/whatsapp', json)).status, 422, JSON.stringify(json));
  }
  const { chatUrl } = await chatSimulator(t);
  const body = JSON.stringify({ from: ADA, to: OURS, text: 'Hi.' });
  const headers = { 'content-type': 'application/json' };
  assert.equal((await fetch(`${chatUrl}/simulator/whatsapp`, { method: 'POST', headers, body })).status, 422);
});
