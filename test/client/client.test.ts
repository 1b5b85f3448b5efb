import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Sendwright, SendwrightError } from '../../client/index.ts';
import { inFuture, type Organization, REQUEST_ID, type Service, startService } from '../http/service.ts';

/** Operations without a method of their own: a link that needs no key, and what load balancers ask. */
const LEFT_OUT = ['GET /v1/emails/{id}/attachments/{attachmentId}/download', 'GET /healthz', 'GET /readyz'];

let service: Service;
let ours: Organization;
let sendwright: Sendwright;
/** What was asked, as method and path, in order. */
const asked: string[] = [];

before(async () => {
  service = await startService();
  ours = await service.organization();
  const noting: typeof fetch = (input, init) => {
    const { method, url } = new Request(input, init);
    asked.push(`${method} ${new URL(url).pathname}`);
    return fetch(input, init);
  };
  sendwright = new Sendwright({ baseUrl: `${service.url}/`, apiKey: ours.key, fetch: noting });
});
after(() => service.close());

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
    assert.deepEqual(
      (await all(sendwright.emails.list({ tag: 'kind:test' }))).map((each) => each.id),
      [id],
    );

    assert.equal((await sendwright.emails.content(id)).subject, 'Hello');
    assert.equal(await sendwright.emails.eraseContent(id), undefined);
    await assert.rejects(sendwright.emails.content(id), { code: 'content_erased' });

    const batch = await sendwright.emails.batch([later, later]);
    assert.equal(batch.total, 2);
    assert.equal((await sendwright.batches.get(batch.id)).counts.scheduled, 2);
    assert.equal((await sendwright.batches.cancel(batch.id)).canceled, 2);
    assert.equal((await all(sendwright.batches.list())).length, 1);

    const number = await sendwright.numbers.create({ number: '+12025550142', provider: 'twilio', auth_token: 'token' });
    assert.equal((await sendwright.numbers.get(number.id)).number, '+12025550142');
    assert.equal((await all(sendwright.numbers.list())).length, 1);
    const message = await sendwright.chatapp.send({ to: '+14165550123', text: 'Hi.' });
    assert.equal((await sendwright.chatapp.get(message.id)).text, 'Hi.');
    assert.equal((await all(sendwright.chatapp.list({ to: '+14165550123' }))).length, 1);
    assert.equal(await sendwright.numbers.delete(number.id), undefined);

    const domain = await sendwright.domains.create('client.example.com');
    assert.equal((await sendwright.domains.get(domain.id)).status, 'pending');
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

    const { paths } = (await service.call('GET', '/openapi.json')).body as { paths: Record<string, object> };
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const wanting = operations.filter((operation) => !LEFT_OUT.includes(operation) && !asked.some(fits(operation)));
    assert.deepEqual(wanting, []);
  });

  it('goes over a list page by page, and gives one page', async () => {
    const batch = await sendwright.emails.batch(Array.from({ length: 5 }, (_, i) => email(`p${i}@example.net`)));
    const before = asked.length;
    const found = await all(sendwright.emails.list({ batch_id: batch.id, limit: 2 }));
    assert.equal(new Set(found.map(({ id }) => id)).size, 5);
    assert.equal(asked.length - before, 3, 'as many requests as pages');
    const page = await sendwright.emails.list({ batch_id: batch.id, limit: 2 }).page();
    assert.deepEqual([page.emails.length, page.has_more], [2, true]);
    for await (const each of sendwright.emails.list({ batch_id: batch.id, limit: 2 })) {
      assert.equal(each.id, found[0]?.id);
      break;
    }
    assert.equal(asked.length - before, 5, 'no page is asked for that nobody wants');
  });

  it('throws what the API says, with code, status, field and request', async () => {
    await assert.rejects(sendwright.emails.send({ ...email(), to: ['a@example.net', 'b'] }), (error: unknown) => {
      assert.ok(error instanceof SendwrightError, String(error));
      const { name, code, status, param, requestId, message } = error;
      assert.deepEqual([name, code, status, param], ['SendwrightError', 'validation_error', 422, 'to.1']);
      assert.match(String(requestId), REQUEST_ID);
      assert.ok(message.startsWith('to.1: '), message);
      return true;
    });
    await assert.rejects(sendwright.emails.get('em_none'), { code: 'not_found', status: 404 });
    const stranger = new Sendwright({ baseUrl: service.url, apiKey: 'sw_live_x' });
    await assert.rejects(stranger.emails.list().page(), { code: 'unauthorized', status: 401 });
  });

  it('asks for what is named, whatever it is called, and for nothing beside it', async () => {
    const before = asked.length;
    await assert.rejects(sendwright.emails.get('a/../../x?y#z'), { code: 'not_found' });
    assert.deepEqual(asked.slice(before), ['GET /v1/emails/a%2F..%2F..%2Fx%3Fy%23z']);
    for (const id of ['', '.', '..'])
      await assert.rejects(sendwright.emails.get(id), { code: 'invalid_argument', param: 'id' });
    assert.equal(asked.length, before + 1);
  });

  it('carries out a repeated request once', async () => {
    const [first, again] = [
      await sendwright.emails.send(email(), { idempotencyKey: 'Größe №1' }),
      await sendwright.emails.send(email(), { idempotencyKey: 'Größe №1' }),
    ];
    assert.equal(first.id, again.id);
    assert.notEqual((await sendwright.emails.send(email())).id, (await sendwright.emails.send(email())).id);
  });
});

/** Whether a request is one of an operation: what stands in the place of `{…}` is no word that is an address of its own. */
function fits(operation: string): (request: string) => boolean {
  const pattern = new RegExp(`^${operation.replace(/\{\w+\}/g, '(?!(?:batch|tags|numbers)$)[^/]+')}$`);
  return (request) => pattern.test(request);
}

/** What is wrong does not compile. */
export async function wrong(): Promise<void> {
  // @ts-expect-error an email needs a subject
  await sendwright.emails.send({ from: 'a@example.com', to: 'b@example.com', text: 'Hi.' });
  // @ts-expect-error there is no such status
  sendwright.emails.list({ status: 'gone' });
  // @ts-expect-error a batch takes no files
  await sendwright.emails.batch([{ ...email(), attachments: [] }]);
  // @ts-expect-error a summary has no events
  for await (const each of sendwright.emails.list()) asked.push(String(each.events));
}
