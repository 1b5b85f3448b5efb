import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import { STATUS } from '../../src/http/plugins/errors.ts';
import { assertDescribed as assertAsDescribed, assertEvent, assertForm as assertOfForm } from './described.ts';
import { type Answer, inFuture, type Organization, type Service, startService } from './service.ts';

type Json = Record<string, unknown>;
interface Operation {
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly Json[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { content: { 'application/json': { schema: Schema; example?: Json } } };
  readonly responses: Readonly<Record<string, Response>>;
}
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: {
    readonly 'application/json'?: {
      readonly example?: unknown;
      readonly examples?: Readonly<Record<string, { readonly value: { readonly error: Json } }>>;
    };
  };
}
interface Schema {
  readonly $ref?: string;
  readonly enum?: readonly string[];
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface EventDescription {
  readonly schema: Schema;
  readonly example: { readonly type: string };
}
interface Document {
  readonly webhooks: Readonly<
    Record<
      string,
      {
        readonly post: {
          readonly requestBody: { content: { 'application/json': EventDescription } };
        };
      }
    >
  >;
  readonly components: {
    readonly headers: Readonly<Record<string, { readonly description: string }>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

let service: Service;
let ours: Organization;
let api: Document;
before(async () => {
  service = await startService();
  ours = await service.organization();
  await ours.addDomain('example.com');
  await ours.call('POST', '/v1/chatapp/numbers', {
    json: { number: '+12025550142', provider: 'twilio', auth_token: 'token' },
  });
  api = (await service.call('GET', '/openapi.json')).body as Document;
});
after(() => service.close());

const operations = () =>
  Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [path, method, operation] as const),
  );

/** The schema that a reference names. */
function named(schema: Schema = {}): Schema {
  return schema.$ref ? (api.components.schemas[schema.$ref.replace('#/components/schemas/', '')] ?? {}) : schema;
}

/** The id of a webhook endpoint. */
async function endpoint(): Promise<string> {
  const answer = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
  return (answer.body as { id: string }).id;
}

const assertForm = (path: string, method: string, status: number, body: unknown) =>
  assertOfForm(api, path, method, status, body);
const assertDescribed = (path: string, method: string, answer: Answer) => assertAsDescribed(api, path, method, answer);

describe('GET /openapi.json', () => {
  it('describes every route but the hidden ones', () => {
    assert.deepEqual(
      operations().map(([path, method]) => `${method.toUpperCase()} ${path}`),
      [
        'POST /v1/emails',
        'GET /v1/emails',
        'GET /v1/emails/tags',
        'POST /v1/emails/batch',
        'GET /v1/emails/batch',
        'GET /v1/emails/batch/{id}',
        'POST /v1/emails/batch/{id}/cancel',
        'GET /v1/emails/{id}',
        'PATCH /v1/emails/{id}',
        'POST /v1/emails/{id}/cancel',
        'GET /v1/emails/{id}/content',
        'DELETE /v1/emails/{id}/content',
        'GET /v1/emails/{id}/attachments',
        'GET /v1/emails/{id}/attachments/{attachmentId}',
        'GET /v1/emails/{id}/attachments/{attachmentId}/download',
        'POST /v1/chatapp',
        'GET /v1/chatapp',
        'POST /v1/chatapp/numbers',
        'GET /v1/chatapp/numbers',
        'GET /v1/chatapp/numbers/{id}',
        'DELETE /v1/chatapp/numbers/{id}',
        'GET /v1/chatapp/{id}',
        'POST /v1/domains',
        'GET /v1/domains',
        'GET /v1/domains/{id}',
        'DELETE /v1/domains/{id}',
        'POST /v1/domains/{id}/verify',
        'POST /v1/suppressions',
        'GET /v1/suppressions',
        'GET /v1/suppressions/{idOrEmail}',
        'DELETE /v1/suppressions/{idOrEmail}',
        'POST /v1/erasures',
        'POST /v1/webhooks',
        'GET /v1/webhooks',
        'GET /v1/webhooks/{id}',
        'PATCH /v1/webhooks/{id}',
        'DELETE /v1/webhooks/{id}',
        'POST /v1/webhooks/{id}/rotate-secret',
        'POST /v1/webhooks/{id}/test',
        'POST /v1/webhooks/{id}/replay',
        'GET /v1/webhooks/{id}/deliveries',
        'GET /v1/webhooks/{id}/deliveries/{deliveryId}',
        'POST /v1/webhooks/{id}/deliveries/{deliveryId}/replay',
        'POST /v1/keys',
        'GET /v1/keys',
        'GET /v1/keys/{id}',
        'DELETE /v1/keys/{id}',
        'GET /healthz',
        'GET /readyz',
      ],
    );
  });

  it('says of each what it does, and whether it needs a key', () => {
    for (const [path, method, { summary, tags, security }] of operations()) {
      assert.ok(summary && tags?.length, `${method} ${path}`);
      const open = !path.startsWith('/v1/') || path.endsWith('/download');
      assert.deepEqual(security, open ? [] : [{ apiKey: [] }], path);
    }
  });

  it('describes what endpoints are posted: every type of event once, with an example of each kind', () => {
    const types = Object.values(api.webhooks).flatMap(({ post }) => {
      const { schema, example } = post.requestBody.content['application/json'];
      assertEvent(api, example);
      return named(named(schema).properties?.['type']).enum ?? [];
    });
    assert.deepEqual(types.sort(), [...EVENT_TYPES].sort());
  });

  it('holds nothing internal', () => {
    assert.doesNotMatch(JSON.stringify(api), /node_modules|\/src\/|postgres|127\.0\.0\.1|"def-\d|"x-/);
  });
});

describe('an operation', () => {
  const each = (work: (operation: Operation, path: string, method: string) => void) => {
    for (const [path, method, operation] of operations()) work(operation, path, method);
  };

  it('has an example of its body, if it takes one, and of its answer, if that is JSON', () => {
    each(({ requestBody, responses }, path, method) => {
      if (requestBody) assert.ok(requestBody.content['application/json'].example, `${method} ${path}`);
      for (const [status, { content }] of Object.entries(responses)) {
        if (Number(status) < 400 && content?.['application/json']) {
          assert.ok(content['application/json'].example, `${method} ${path} ${status}`);
        }
      }
    });
  });

  it('has examples of answers that are of its form', () => {
    each(({ responses }, path, method) => {
      for (const [status, { content }] of Object.entries(responses)) {
        const { example, examples = {} } = content?.['application/json'] ?? {};
        const bodies = [example, ...Object.values(examples).map(({ value }) => value)].filter(Boolean);
        for (const body of bodies) assertForm(path, method, Number(status), body);
      }
    });
  });

  it('tells each of its errors by code, with an example that the API could answer', () => {
    each(({ responses }, path, method) => {
      for (const [status, { description, content }] of Object.entries(responses)) {
        if (Number(status) < 400) continue;
        const examples = Object.entries(content?.['application/json']?.examples ?? {});
        assert.ok(examples.length > 0, `${method} ${path} ${status}`);
        for (const [code, { value }] of examples) {
          assert.equal(STATUS[code as keyof typeof STATUS], Number(status));
          assert.equal(value.error['code'], code);
          assert.match(description, new RegExp(`\`${code}\`: \\w`));
        }
      }
    });
  });

  it('that needs a key may answer 401, 403 and 429, and tells of the headers of each answer', () => {
    each(({ responses, security }, path, method) => {
      const needsKey = security?.length !== 0;
      for (const status of ['401', '403', '429']) {
        if (needsKey) assert.ok(responses[status], `${method} ${path} ${status}`);
      }
      for (const [status, { headers = {} }] of Object.entries(responses)) {
        const names = Object.keys(headers);
        assert.ok(names.includes('X-Request-Id'), `${method} ${path} ${status}`);
        assert.equal(
          names.includes('RateLimit-Remaining'),
          needsKey && status !== '401',
          `${method} ${path} ${status}`,
        );
        assert.equal(names.includes('Retry-After'), ['429', '503'].includes(status), `${method} ${path} ${status}`);
        for (const [name, { $ref }] of Object.entries(headers)) {
          assert.equal($ref, `#/components/headers/${name}`);
          assert.match(api.components.headers[name]?.description ?? '', /\w/);
        }
      }
    });
  });

  it('says what each of its query parameters does', () => {
    each(({ parameters = [] }, path, method) => {
      for (const { name, in: where, description } of parameters) {
        if (where === 'query' && name !== 'signature') assert.ok(description, `${method} ${path} ${name}`);
      }
    });
  });

  it('takes the example of its request', async () => {
    const soon = inFuture({ hours: 1 });
    const bodies = operations().filter(([, , { requestBody }]) => requestBody);
    for (const [path, method, { requestBody }] of bodies) {
      const id = path.startsWith('/v1/webhooks') ? await endpoint() : await ours.sent({ scheduled_at: soon });
      const json = requestBody?.content['application/json'].example;
      const answer = await ours.call(method.toUpperCase(), path.replace('{id}', id), { json });
      assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`);
      assertDescribed(path, method, answer);
    }
    assert.equal(bodies.length, 12);
  });

  it('takes the examples of its query parameters', async () => {
    const webhook = await endpoint();
    let tried = 0;
    for (const [path, , { parameters = [] }] of operations()) {
      for (const { name, in: where, example, examples = {} } of parameters) {
        const given = where === 'query' ? [example, ...Object.values(examples).map(({ value }) => value)] : [];
        for (const value of given.filter((each) => each !== undefined)) {
          const query = [value].flat().map((each) => `${name}=${each as string | number}`);
          const answer = await ours.call('GET', `${path.replace('{id}', webhook)}?${query.join('&')}`);
          assert.equal(answer.status, 200, answer.text);
          assertDescribed(path, 'get', answer);
          tried++;
        }
      }
    }
    assert.ok(tried >= 5, `${tried} examples`);
  });
});

describe('every example of a request is accepted', () => {
  it('POST /v1/emails', async () => {
    const { properties = {} } = named(
      api.paths['/v1/emails']?.['post']?.requestBody?.content['application/json'].schema,
    );
    let tried = 0;
    for (const [field, { examples = [] }] of Object.entries(properties)) {
      for (const example of examples) {
        const answer = await ours.send({ [field]: example });
        tried++;
        assert.equal(answer.status, 202, `${field}: ${JSON.stringify(example)}; ${answer.text}`);
      }
    }
    assert.ok(tried >= 10, `${tried} examples`);
  });

  it('PATCH /v1/emails/{id}', async () => {
    const { requestBody } = api.paths['/v1/emails/{id}']?.['patch'] ?? {};
    const schema = named(requestBody?.content['application/json'].schema);
    const examples = schema.properties?.['scheduled_at']?.examples ?? [];
    assert.ok(examples.length > 0);
    const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
    for (const example of examples) {
      const answer = await ours.call('PATCH', `/v1/emails/${id}`, { json: { scheduled_at: example } });
      assert.equal(answer.status, 200, `${JSON.stringify(example)}: ${answer.text}`);
    }
  });
});

describe('every answer is one that is described', () => {
  const ID = `em_${'0'.repeat(26)}`;
  const unread = { raw: 'x', headers: { 'content-type': 'text/plain' } };
  const notJson = { raw: '{', headers: { 'content-type': 'application/json' } };

  it('POST /v1/emails', async () => {
    const readOnly = await ours.addKey('read_only');
    for (const answer of [
      await ours.send(),
      await ours.send({ scheduled_at: inFuture({ hours: 1 }) }),
      await ours.send({ subject: '' }),
      await ours.send({ from: 'a@nobody.example' }),
      await service.call('POST', '/v1/emails'),
      await service.call('POST', '/v1/emails', { key: readOnly }),
      await ours.call('POST', '/v1/emails', unread),
      await ours.call('POST', '/v1/emails', notJson),
      await ours.call('POST', '/v1/emails', { raw: Buffer.alloc(46_000_000), headers: unread.headers }),
      await ours.call('POST', '/v1/emails?x=1', { json: ours.mail() }),
    ]) {
      assertDescribed('/v1/emails', 'post', answer);
    }
  });

  it('GET /v1/emails/{id}', async () => {
    const full = await ours.sent({
      cc: 'a@example.net',
      bcc: 'a@example.net',
      reply_to: 'a@example.net',
      tags: [{ name: 'a', value: 'b' }],
      headers: { 'X-A': 'b' },
      marketing: true,
      scheduled_at: inFuture({ hours: 1 }),
    });
    const sending = await ours.addKey('sending_access');
    for (const answer of [
      await ours.call('GET', `/v1/emails/${full}`),
      await ours.call('GET', `/v1/emails/${await ours.sent()}`),
      await ours.call('GET', `/v1/emails/${ID}`),
      await ours.call('GET', `/v1/emails/${ID}?x=1`),
      await service.call('GET', `/v1/emails/${ID}`),
      await service.call('GET', `/v1/emails/${ID}`, { key: sending }),
    ]) {
      assertDescribed('/v1/emails/{id}', 'get', answer);
    }
  });

  for (const path of ['/v1/emails', '/v1/emails/tags']) {
    it(`GET ${path}`, async () => {
      await ours.sent({ tags: [{ name: 'a', value: 'b' }], scheduled_at: inFuture({ hours: 1 }) });
      for (const answer of [
        await ours.call('GET', path),
        await ours.call('GET', `${path}?x=1`),
        await service.call('GET', path),
        await service.call('GET', path, { key: await ours.addKey('sending_access') }),
      ]) {
        assertDescribed(path, 'get', answer);
      }
    });
  }

  for (const [method, path, json] of [
    ['patch', '/v1/emails/{id}', { scheduled_at: inFuture({ hours: 2 }) }],
    ['post', '/v1/emails/{id}/cancel', {}],
  ] as const) {
    it(`${method.toUpperCase()} ${path}`, async () => {
      const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
      const readOnly = await ours.addKey('read_only');
      const ask = (each: string, call: object) => ours.call(method.toUpperCase(), path.replace('{id}', each), call);
      for (const answer of [
        await ask(id, { json }),
        await ask(ID, { json }),
        await ask(await ours.sent(), { json }),
        await ask(id, { json: { x: 1 } }),
        await ask(id, unread),
        await ask(id, notJson),
        await ask(id, { raw: Buffer.alloc(46_000_000), headers: unread.headers }),
        await ask(id, { json, key: 'x' }),
        await ask(id, { json, key: readOnly }),
      ]) {
        assertDescribed(path, method, answer);
      }
    });
  }

  it('health', async () => {
    for (const path of ['/healthz', '/readyz']) {
      assertDescribed(path, 'get', await service.call('GET', path));
      assertDescribed(path, 'get', await service.call('GET', `${path}?x=1`));
    }
  });
});
