import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { changeQuota } from '../../src/intake/quota.ts';
import { assertDescribed as assertInDocument, type Described, operationsOf } from './described.ts';
import { connectNumber, fillPath, resourceOf } from './resources.ts';
import { type Answer, type Call, inFuture, startService, useService } from './service.ts';
import { head, sendBytes } from './socket.ts';

const service = await useService({ publicUrl: 'https://mail.example.com' });
const ours = await service.organization();
await ours.addDomain('example.com');
const { number } = await connectNumber(ours);
await ours.addSender('+12025550143');
const [readOnly, sending] = [await ours.addKey('read_only'), await ours.addKey('sending_access')];
const api = (await service.call('GET', '/openapi.json')).body as Described;
const operations = operationsOf(api);

const assertDescribed = (path: string, method: string, answer: Answer) => assertInDocument(api, path, method, answer);

describe('answers conform to the document', () => {
  for (const { method, path, name, security, requestBody, example: json } of operations) {
    if (path.endsWith('/download')) continue;
    it(`of ${name} to a correct request and to each incorrect one`, async () => {
      const ids = (await resourceOf(path)?.(ours)) ?? {};
      const address = (given = ids) => fillPath(path, given);
      const assertStatus = async (status: number, call: Call, at = address()) => {
        const answer = await service.call(method.toUpperCase(), at, { key: ours.key, ...call });
        assert.equal(answer.status, status, `${status} is expected, not ${answer.status}: ${answer.text}`);
        assertDescribed(path, method, answer);
      };
      const raw = (text: string, type: string) => ({ raw: text, headers: { 'content-type': type } });
      const right: Call = json === undefined ? {} : { json };

      await assertStatus(422, right, `${address()}?unknown=1`);
      if (security?.length !== 0) {
        await assertStatus(401, { ...right, key: 'x' });
        const weak = method === 'get' && !path.startsWith('/v1/keys') ? sending : readOnly;
        await assertStatus(403, { ...right, key: weak });
      }
      if (path.includes('{')) await assertStatus(404, right, address({}));
      if (requestBody) {
        await assertStatus(422, { json: { unknown: 1 } });
        await assertStatus(415, raw('x', 'text/plain'));
        await assertStatus(400, raw('{', 'application/json'));
        const request = head(address(), ours.key, 'Content-Type: application/json', 'Content-Length: 60000000');
        const tooLong = await sendBytes(service.port, request.replace(/^POST/, method.toUpperCase()));
        assert.equal(tooLong.status, 413, tooLong.text);
        assertDescribed(path, method, tooLong);
      }
      const answer = await ours.call(method.toUpperCase(), address(), right);
      assert.ok(answer.status < 300, answer.text);
      assertDescribed(path, method, answer);
    });
  }

  it('for an email with every field, and for one that is not scheduled', async () => {
    const fields = { cc: 'a@example.net', tags: [{ name: 'a', value: 'b' }], headers: { 'X-A': 'b' }, marketing: true };
    const [full, plain] = [await ours.sent({ ...fields, bcc: fields.cc, reply_to: fields.cc }), await ours.sent()];
    for (const id of [full, plain])
      assertDescribed('/v1/emails/{id}', 'get', await ours.call('GET', `/v1/emails/${id}`));
    const cancel = await ours.call('POST', `/v1/emails/${plain}/cancel`);
    assert.equal(cancel.status, 422);
    assertDescribed('/v1/emails/{id}/cancel', 'post', cancel);
    const domain = await ours.send({ from: 'a@unregistered.example' });
    assert.equal(domain.status, 403);
    assertDescribed('/v1/emails', 'post', domain);
  });

  it('for each type of chat-app message', async () => {
    const [path, to, link] = ['/v1/chatapp', '+14165550123', 'https://example.com/a.pdf'];
    for (const json of [
      { text: 'Hi.', preview_url: true },
      { type: 'template', template: { name: 't', language: { code: 'en' }, components: [{ n: 1 }] } },
      { type: 'image', text: 'Look', image: { link, caption: null } },
      { type: 'document', document: { link, caption: 'Yours', filename: 'a.pdf' } },
    ]) {
      const { body } = await ours.call('POST', path, { json: { from: number, to, ...json } });
      const { id } = body as { id: string };
      assertDescribed(`${path}/{id}`, 'get', await ours.call('GET', `${path}/${id}`));
    }
    await service.pool.query(`UPDATE chat_messages SET status = 'failed', error = 'no', error_code = '1'`);
    assertDescribed(path, 'get', await ours.call('GET', `${path}?status=failed`));
  });

  it('for conflicts: a number or domain that is registered, an endpoint that is disabled', async () => {
    const hook = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
    const { id } = hook.body as { id: string };
    await ours.call('PATCH', `/v1/webhooks/${id}`, { json: { status: 'disabled' } });
    for (const [path, json] of [
      ['/v1/chatapp/numbers', { number, provider: 'twilio', auth_token: 'token' }],
      ['/v1/domains', { name: 'example.com' }],
      ['/v1/webhooks/{id}/test', undefined],
      ['/v1/webhooks/{id}/replay', { since: '2026-03-01T00:00:00Z' }],
    ] as const) {
      const answer = await ours.call('POST', path.replace('{id}', id), json && { json });
      assert.equal(answer.status, 409, `${path}: ${answer.text}`);
      assertDescribed(path, 'post', answer);
    }
  });

  it('for too many requests, too many emails, and a quota that is used up', async (t) => {
    const limited = await startService({ perSecond: { requests: 1, mails: 1 } });
    t.after(() => limited.close());
    const [one, two] = [await limited.organization(), await limited.organization()];
    const emails = Array.from({ length: 100 }, () => one.mail());
    await one.call('POST', '/v1/emails/batch', { json: { emails } });
    await changeQuota(limited.pool, two.id, 0);
    const answers = [await one.send(), await one.send(), await two.send()];
    assert.deepEqual(
      answers.map(({ body }) => (body as { error: { code: string } }).error.code),
      ['rate_limit_exceeded', 'rate_limit_exceeded', 'quota_exceeded'],
    );
    for (const answer of answers) assertDescribed('/v1/emails', 'post', answer);
    assertDescribed('/v1/keys', 'get', await one.call('GET', '/v1/keys'));
  });
});

describe('the examples in the document are accepted', () => {
  it('for query parameters', async () => {
    let tried = 0;
    for (const { path, parameters = [] } of operations) {
      const address = fillPath(path, (await resourceOf(path)?.(ours)) ?? {});
      for (const { name, in: location, example, examples = {} } of parameters) {
        const values = location === 'query' ? [example, ...Object.values(examples).map(({ value }) => value)] : [];
        for (const value of values.filter((each) => each !== undefined)) {
          const query = [value].flat().map((each) => `${name}=${each as string | number}`);
          const answer = await ours.call('GET', `${address}?${query.join('&')}`);
          assert.equal(answer.status, 200, answer.text);
          assertDescribed(path, 'get', answer);
          tried++;
        }
      }
    }
    assert.ok(tried >= 5, `${tried} examples`);
  });

  for (const [method, path, least] of [
    ['post', '/v1/emails', 10],
    ['patch', '/v1/emails/{id}', 1],
  ] as const) {
    it(`for the fields of ${method.toUpperCase()} ${path}`, async () => {
      const schema = api.paths[path]?.[method]?.requestBody?.content?.['application/json']?.schema;
      const { properties = {} } = api.components.schemas[schema?.$ref?.split('/').at(-1) ?? ''] ?? {};
      const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
      let tried = 0;
      for (const [field, { examples = [] }] of Object.entries(properties)) {
        for (const example of examples) {
          const fields = { [field]: example };
          const json = method === 'post' ? ours.mail(fields) : fields;
          const answer = await ours.call(method.toUpperCase(), path.replace('{id}', id), { json });
          assert.ok(answer.status < 300, `${field}: ${JSON.stringify(example)}; ${answer.text}`);
          tried++;
        }
      }
      assert.ok(tried >= least, `${tried} examples`);
    });
  }
});
