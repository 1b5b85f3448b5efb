import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Sendwright, SendwrightError } from '../../client/index.ts';
import { operationsOf, type Described } from '../http/described.ts';
import { inFuture, REQUEST_ID, useService } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';

/** Operations without a method: links that need no key, and the health checks of load balancers. */
const LEFT_OUT = /\/download$|\/(?:healthz|readyz)$/;

const service = await useService({ logsRequests: true });
const ours = await service.organization();
/** The requests of the client, as method and path, in order. */
const requests: string[] = [];
const recordingFetch: typeof fetch = (input, init) => {
  const { method, url } = new Request(input, init);
  requests.push(`${method} ${new URL(url).pathname}`);
  return fetch(input, init);
};
const sendwright = new Sendwright({ baseUrl: `${service.url}/`, apiKey: ours.key, fetch: recordingFetch });

const email = (to = 'ada@example.net') => ({ from: `hello@${ours.domain}`, to, subject: 'Hello', text: 'Hi.' });

async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of list) items.push(item);
  return items;
}

describe('the client', () => {
  it('has a method for every operation of the API', async () => {
    const later = { ...email(), scheduled_at: inFuture({ days: 1 }) };
    const { id, status } = await sendwright.emails.send({
      ...later,
      tags: [{ name: 'kind', value: 'test' }],
      attachments: [{ filename: 'a.txt', content: 'SGVsbG8=' }],
    });
    assert.equal(status, 'scheduled');
    const at = inFuture({ days: 2 });
    assert.equal((await sendwright.emails.reschedule(id, at)).scheduled_at, at);
    assert.equal((await sendwright.emails.cancel(id)).status, 'canceled');
    const [file] = await sendwright.emails.attachments(id);
    assert.ok(file?.download_url, 'it has a link');
    assert.equal((await sendwright.emails.attachment(id, file.id)).filename, 'a.txt');
    assert.equal((await sendwright.emails.get(id)).subject, 'Hello');
    assert.deepEqual(await sendwright.emails.tags(), [{ name: 'kind', value: 'test', count: 1 }]);
    assert.equal((await all(sendwright.emails.list({ tag: 'kind:test' }))).length, 1);

    assert.equal((await sendwright.emails.content(id)).subject, 'Hello');
    await sendwright.emails.eraseContent(id);
    await assert.rejects(sendwright.emails.content(id), { code: 'content_erased' });

    const batch = await sendwright.emails.batch([later, later]);
    assert.equal(batch.total, 2);
    assert.equal((await sendwright.batches.get(batch.id)).counts.scheduled, 2);
    assert.equal((await sendwright.batches.cancel(batch.id)).canceled, 2);
    assert.equal((await all(sendwright.batches.list())).length, 1);

    const { series } = await sendwright.stats.get({ by: 'batch', step: 'day' });
    assert.deepEqual(
      series.map(({ key, totals }) => [key, totals.accepted, totals.canceled]),
      [[batch.id, 2, 2]],
    );

    const number = await sendwright.numbers.create({ number: '+12025550142', provider: 'twilio', auth_token: 'token' });
    assert.equal((await sendwright.numbers.get(number.id)).number, '+12025550142');
    assert.equal((await all(sendwright.numbers.list())).length, 1);
    const message = await sendwright.chatapp.send({ to: '+14165550123', text: 'Hi.' });
    assert.equal((await sendwright.chatapp.get(message.id)).text, 'Hi.');
    assert.equal((await all(sendwright.chatapp.list({ to: '+14165550123' }))).length, 1);
    const planned = await sendwright.chatapp.send({ to: '+14165550123', text: 'Hi.', scheduled_at: at });
    assert.equal((await sendwright.chatapp.reschedule(planned.id, later.scheduled_at)).id, planned.id);
    assert.equal((await sendwright.chatapp.cancel(planned.id)).status, 'canceled');
    await sendwright.chatapp.eraseContent(planned.id);
    assert.equal((await sendwright.chatapp.get(planned.id)).text, null);
    await sendwright.numbers.delete(number.id);

    await ours.addSender('+12025550143');
    assert.equal((await all(sendwright.sms.senders())).length, 1);
    const sms = await sendwright.sms.send({ to: '+14165550123', text: 'Hi.', scheduled_at: at });
    assert.equal((await sendwright.sms.get(sms.id)).text, 'Hi.');
    assert.equal((await all(sendwright.sms.list({ status: 'scheduled' }))).length, 1);
    assert.equal((await sendwright.sms.reschedule(sms.id, later.scheduled_at)).status, 'scheduled');
    assert.equal((await sendwright.sms.cancel(sms.id)).status, 'canceled');
    await sendwright.sms.eraseContent(sms.id);
    assert.equal((await sendwright.sms.get(sms.id)).text, null);

    const domain = await sendwright.domains.create('client.example.com');
    assert.equal((await sendwright.domains.get(domain.id)).status, 'pending');
    assert.equal((await sendwright.domains.update(domain.id, { open_tracking: false })).open_tracking, false);
    assert.equal((await sendwright.domains.verify(domain.id)).id, domain.id);
    assert.equal((await all(sendwright.domains.list())).length, 2);
    await sendwright.domains.delete(domain.id);

    const [report] = await sendwright.erasures.create('erased@example.net');
    assert.equal(report?.emails, 0);

    const [entry] = await sendwright.suppressions.create('a@example.net', 'b+c@example.net');
    assert.equal(entry?.origin, 'manual');
    assert.equal((await sendwright.suppressions.get('b+c@example.net')).email, 'b+c@example.net');
    assert.equal((await all(sendwright.suppressions.list({ origin: 'manual' }))).length, 2);
    await sendwright.suppressions.delete('b+c@example.net');

    const webhook = await sendwright.webhooks.create({ url: 'https://example.com/hook', events: ['email.sent'] });
    assert.match(webhook.secret, /^whsec_/);
    assert.equal((await sendwright.webhooks.update(webhook.id, { description: 'Ours' })).description, 'Ours');
    assert.equal((await sendwright.webhooks.get(webhook.id)).status, 'enabled');
    assert.equal((await all(sendwright.webhooks.list())).length, 1);
    assert.notEqual((await sendwright.webhooks.rotateSecret(webhook.id)).secret, webhook.secret);
    const { id: delivery } = await sendwright.webhooks.test(webhook.id);
    assert.equal((await sendwright.webhooks.delivery(webhook.id, delivery)).type, 'webhook.test');
    assert.equal((await all(sendwright.webhooks.deliveries(webhook.id, { status: 'pending' }))).length, 1);
    await sendwright.webhooks.replayDelivery(webhook.id, delivery);
    assert.equal((await sendwright.webhooks.replay(webhook.id, { since: '2026-01-01T00:00:00Z' })).replayed, 1);
    await sendwright.webhooks.delete(webhook.id);

    const key = await sendwright.keys.create({ preset: 'read_only', name: 'Reader' });
    assert.match(key.api_key, /^sw_live_/);
    assert.equal((await sendwright.keys.get(key.id)).name, 'Reader');
    assert.equal((await all(sendwright.keys.list())).length, 2);
    await sendwright.keys.delete(key.id);

    const logged = await eventually('the log has the sent email', async () =>
      (await all(sendwright.requests.list({ path: '/v1/emails' }))).at(-1),
    );
    assert.deepEqual([logged.method, logged.status], ['POST', 202]);

    const operations = operationsOf((await service.call('GET', '/openapi.json')).body as Described);
    for (const { name } of operations.filter(({ path }) => !LEFT_OUT.test(path)))
      assert.ok(
        requests.some((request) => isCallOf(name, request)),
        name,
      );
  });

  it('iterates over a list page by page, requests no page beyond what is read, and returns a single page', async () => {
    const batch = await sendwright.emails.batch(Array.from({ length: 5 }, (_, i) => email(`p${i}@example.net`)));
    const before = requests.length;
    const found = await all(sendwright.emails.list({ batch_id: batch.id, limit: 2 }));
    assert.equal(new Set(found.map(({ id }) => id)).size, 5);
    assert.equal(requests.length - before, 3, 'as many requests as pages');
    const page = await sendwright.emails.list({ batch_id: batch.id, limit: 2 }).page();
    assert.deepEqual([page.emails.length, page.has_more], [2, true]);
    for await (const each of sendwright.emails.list({ batch_id: batch.id, limit: 2 })) {
      assert.equal(each.id, found[0]?.id);
      break;
    }
    assert.equal(requests.length - before, 5);
  });

  it('throws the error of the API with its code, status, field and request id', async () => {
    await assert.rejects(sendwright.emails.send({ ...email(), to: ['a@example.net', 'b'] }), (error: unknown) => {
      assert.ok(error instanceof SendwrightError, String(error));
      const { name, code, status, param, requestId, message } = error;
      assert.deepEqual([name, code, status, param], ['SendwrightError', 'validation_error', 422, 'to.1']);
      assert.deepEqual(error.errors, [{ param, message }]);
      assert.match(error.docs ?? '', /\/docs\/errors#validation_error$/);
      assert.match(String(requestId), REQUEST_ID);
      assert.ok(message.startsWith('to.1: '), message);
      return true;
    });
    await assert.rejects(sendwright.emails.get('em_none'), { code: 'not_found', status: 404 });
    const unauthorized = new Sendwright({ baseUrl: service.url, apiKey: 'sw_live_x' });
    await assert.rejects(unauthorized.emails.list().page(), { code: 'unauthorized', status: 401 });
  });

  it('encodes an id in the path, and refuses an empty one and steps in the path', async () => {
    const before = requests.length;
    await assert.rejects(sendwright.emails.get('a/../../x?y#z'), { code: 'not_found' });
    assert.deepEqual(requests.slice(before), ['GET /v1/emails/a%2F..%2F..%2Fx%3Fy%23z']);
    for (const id of ['', '.', '..'])
      await assert.rejects(sendwright.emails.get(id), { code: 'invalid_argument', param: 'id' });
    assert.equal(requests.length, before + 1);
  });

  it('sends an email once for one idempotency key', async () => {
    const send = (idempotencyKey?: string) => sendwright.emails.send(email(), { idempotencyKey });
    const first = await send('Größe №1');
    assert.equal((await send('Größe №1')).id, first.id);
    assert.notEqual((await send()).id, (await send()).id);
  });
});

/** @returns true if a request is of an operation; `{…}` does not match a word that is a path of another operation */
function isCallOf(operation: string, request: string): boolean {
  return new RegExp(`^${operation.replace(/\{\w+\}/g, '(?!(?:batch|tags|numbers|senders)$)[^/]+')}$`).test(request);
}

/** These calls must not compile. */
export async function misuse(): Promise<void> {
  // @ts-expect-error there is no such status
  sendwright.emails.list({ status: 'gone' });
  // @ts-expect-error a batch has no attachments
  await sendwright.emails.batch([{ ...email(), attachments: [] }]);
  // @ts-expect-error a summary has no events
  for await (const each of sendwright.emails.list()) requests.push(String(each.events));
}
