import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import { ROUTES } from '../../src/http/app.ts';
import { STATUS } from '../../src/http/plugins/errors.ts';
import { assertBody, assertEvent, type Described, operationsOf, type Schema } from './described.ts';
import { assertRefused, useService } from './service.ts';

const PUBLIC_URL = 'https://mail.example.com';
/** Routes for load balancers, without a version. */
const HEALTH = ['/healthz', '/readyz'];

const service = await useService({ publicUrl: PUBLIC_URL });
const ours = await service.organization();
const api = (await service.call('GET', '/openapi.json')).body as Described;
const operations = operationsOf(api);

describe('GET /openapi.json', () => {
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    assert.deepEqual(await validator.validate({ ...api }), { valid: true });
    assert.equal(validator.version, '3.1');
  });

  it('describes every route of the API', () => {
    const routes = ROUTES.map(([method, path]) => `${String(method)} ${path}`);
    assert.deepEqual(
      operations.map(({ name }) => name.replace(/\{(\w+)\}/g, ':$1')).sort(),
      routes.filter((route) => / \/(?:v1\/|healthz|readyz)/.test(route)).sort(),
    );
  });

  it('is under /v1, and under no other version or none, but for health', async () => {
    for (const { name } of operations) {
      const [method = '', path = ''] = name.replace(/\{\w+\}/g, 'x').split(' ');
      if (HEALTH.includes(path)) continue;
      assert.match(path, /^\/v1\//);
      for (const other of [path.replace('/v1/', '/'), path.replace('/v1/', '/v2/')]) {
        assertRefused(await ours.call(method, other), 404, 'not_found');
      }
    }
  });

  it('describes every type of webhook event once, with examples', () => {
    const resolve = (schema: Schema = {}) => api.components.schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
    const types = Object.values(api.webhooks).flatMap(({ post }) => {
      const content = post.requestBody?.content?.['application/json'];
      const types = resolve(resolve(content?.schema).properties?.['type']).enum ?? [];
      const examples = Object.entries(content?.examples ?? {});
      for (const [type, { value }] of examples) {
        const event = value as unknown as { type: string };
        assert.equal(event.type, type);
        assertEvent(api, event);
      }
      assert.deepEqual(examples.map(([type]) => type).sort(), [...types].sort(), 'an example of each type');
      return types;
    });
    assert.deepEqual(types.sort(), [...EVENT_TYPES].sort());
  });

  it('contains nothing internal', () => {
    assert.doesNotMatch(JSON.stringify(api), /node_modules|\/src\/|postgres|127\.0\.0\.1|"def-\d|"x-/);
  });

  it('names PUBLIC_URL as the server, and in the requests of the reference', async () => {
    assert.deepEqual(api.servers, [{ url: PUBLIC_URL }]);
    const { text } = await service.call('GET', '/docs/api/emails');
    assert.ok(text.includes(`${PUBLIC_URL}/v1/emails`));
  });

  it('gives each operation and each webhook a different name for generated clients', () => {
    const ids = [...operations, ...Object.values(api.webhooks).map(({ post }) => post)].map((each) => each.operationId);
    for (const id of ids) assert.match(String(id), /^[a-z][A-Za-z]+$/);
    assert.equal(new Set(ids).size, ids.length);
  });

  it('lists the body of each request and response once, under a name', () => {
    for (const { name, requestBody, responses } of operations) {
      for (const part of [requestBody, ...Object.values(responses)]) {
        const schema = part?.content?.['application/json']?.schema;
        if (schema) assert.ok(schema.$ref ?? schema.anyOf, `${name}: ${JSON.stringify(schema)}`);
      }
    }
  });

  it('states the type of each enumeration, and values of several types as oneOf', () => {
    let enumerations = 0;
    JSON.stringify(api, (key, value: unknown) => {
      if (key === 'example' || key === 'examples') return undefined;
      const { type, enum: values } = (value ?? {}) as { type?: unknown; enum?: unknown };
      if (Array.isArray(values)) {
        assert.equal(type, 'string', JSON.stringify(value));
        enumerations++;
      }
      if (Array.isArray(type)) assert.ok(type.length === 2 && type[1] === 'null', JSON.stringify(value));
      return value;
    });
    assert.ok(enumerations >= 15, `${enumerations} enumerations`);
    const { cc } = api.components.schemas['SendEmailRequest']?.properties ?? {};
    assert.deepEqual(
      cc?.oneOf?.map(({ type }) => type),
      ['string', 'array', 'null'],
    );
  });

  it('states the bounds of Idempotency-Key, which are checked before the fields', () => {
    for (const path of ['/v1/emails', '/v1/emails/batch', '/v1/chatapp']) {
      const header = api.paths[path]?.['post']?.parameters?.find(({ name }) => name === 'idempotency-key');
      const { minLength, maxLength } = header?.schema ?? {};
      assert.deepEqual({ minLength, maxLength }, { minLength: 1, maxLength: 256 }, path);
    }
  });
});

describe('each operation in the document', () => {
  it('has a summary, tags, descriptions of its query parameters, and requires a key unless it is public', () => {
    for (const { name, path, summary, tags, security, parameters = [] } of operations) {
      assert.ok(summary && tags?.length, name);
      const isPublic = !path.startsWith('/v1/') || path.endsWith('/download');
      assert.deepEqual(security, isPublic ? [] : [{ apiKey: [] }], name);
      const query = parameters.filter((each) => each.in === 'query' && each.name !== 'signature');
      for (const each of query) assert.ok(each.description, `${name} ${each.name}`);
    }
  });

  it('has valid examples of its body and of each answer', () => {
    for (const { name, path, method, requestBody, responses, example } of operations) {
      if (requestBody) assert.ok(example, name);
      for (const [status, { content }] of Object.entries(responses)) {
        const json = content?.['application/json'];
        if (!json) continue;
        const values = Object.values(json.examples ?? {}).map(({ value }) => value);
        const bodies = [json.example, ...values].filter(Boolean);
        assert.ok(bodies.length > 0, `${name} ${status}`);
        for (const body of bodies) assertBody(api, path, method, Number(status), body);
      }
    }
  });

  it('returns any media type if it downloads a file, which has its own', () => {
    const downloads = operations.filter(({ path }) => path.endsWith('/download'));
    assert.equal(downloads.length, 2);
    for (const { name, responses } of downloads)
      assert.deepEqual(Object.keys(responses['200']?.content ?? {}), ['*/*'], name);
  });

  it('lists each of its errors by code, with an example', () => {
    for (const { name, responses } of operations) {
      for (const [status, { description, content }] of Object.entries(responses)) {
        if (Number(status) < 400) continue;
        const examples = Object.entries(content?.['application/json']?.examples ?? {});
        assert.ok(examples.length > 0, `${name} ${status}`);
        for (const [code, { value }] of examples) {
          assert.equal(STATUS[code as keyof typeof STATUS], Number(status));
          assert.equal(value.error['code'], code);
          assert.match(description, new RegExp(`\`${code}\`: \\w`));
        }
      }
    }
  });

  it('lists 401, 403 and 429 if it needs a key, and the headers of each answer', () => {
    for (const { name, responses, security, parameters = [] } of operations) {
      const isIdempotent = parameters.some((each) => each.name === 'idempotency-key');
      const needsKey = security?.length !== 0;
      if (needsKey) for (const status of ['401', '403', '429']) assert.ok(responses[status], `${name} ${status}`);
      for (const [status, { headers = {} }] of Object.entries(responses)) {
        const has = (header: string) => Object.keys(headers).includes(header);
        assert.ok(has('X-Request-Id'), `${name} ${status}`);
        assert.equal(has('RateLimit-Remaining'), needsKey && status !== '401', `${name} ${status}`);
        assert.equal(has('Retry-After'), ['429', '503'].includes(status), `${name} ${status}`);
        assert.equal(has('Idempotent-Replayed'), isIdempotent && status === '202', `${name} ${status}`);
        for (const [header, { $ref }] of Object.entries(headers)) {
          assert.equal($ref, `#/components/headers/${header}`);
          assert.match(api.components.headers[header]?.description ?? '', /\w/);
        }
      }
    }
  });
});
