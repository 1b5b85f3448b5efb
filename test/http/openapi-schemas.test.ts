import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { type Service, startService } from './service.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface Part {
  readonly content?: { readonly 'application/json'?: { readonly schema: Schema } };
}
interface Operation {
  readonly operationId?: string;
  readonly parameters?: readonly { readonly name: string; readonly schema: Schema }[];
  readonly requestBody?: Part;
  readonly responses: Readonly<Record<string, Part>>;
}
interface Document {
  readonly servers: unknown;
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const PUBLIC_URL = 'https://mail.example.com';

let service: Service;
let api: Document;
before(async () => {
  service = await startService({ publicUrl: PUBLIC_URL });
  api = (await service.call('GET', '/openapi.json')).body as Document;
});
after(() => service.close());

describe('for generators of clients, the API description', () => {
  it('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    assert.deepEqual(await validator.validate({ ...api }), { valid: true });
    assert.equal(validator.version, '3.1');
  });

  it('names each operation and each webhook for generated clients, all differently', () => {
    const operations = [
      ...Object.values(api.paths).flatMap((methods) => Object.values(methods)),
      ...Object.values(api.webhooks).map(({ post }) => post),
    ];
    const ids = operations.map(({ operationId }) => operationId);
    for (const id of ids) assert.match(String(id), /^[a-z][A-Za-z]+$/);
    assert.equal(new Set(ids).size, ids.length);
  });

  it('lists the body of each request and response once, under a name', () => {
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, { requestBody, responses }] of Object.entries(methods)) {
        for (const part of [requestBody, ...Object.values(responses)]) {
          const schema = part?.content?.['application/json']?.schema;
          if (schema) assert.ok(schema.$ref ?? schema.anyOf, `${method} ${path}: ${JSON.stringify(schema)}`);
        }
      }
    }
    const names = Object.keys(api.components.schemas);
    for (const name of ['Email', 'EmailSummary', 'Batch', 'Domain', 'Webhook', 'ApiKey', 'Suppression', 'ChatMessage'])
      assert.ok(names.includes(name), name);
    for (const name of ['Error', 'ErrorCode', 'EventType', 'EmailStatus', 'BounceReason', 'EmailEvent'])
      assert.ok(names.includes(name), name);
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
    const { to, cc } = api.components.schemas['SendEmailRequest']?.properties ?? {};
    assert.deepEqual(
      to?.oneOf?.map(({ type }) => type),
      ['string', 'array'],
    );
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

  it('names PUBLIC_URL as the server, and on the page of /docs the address of that page', async () => {
    assert.deepEqual(api.servers, [{ url: PUBLIC_URL }]);
    const page = (await service.call('GET', '/docs/json')).body as Document;
    assert.deepEqual(page.servers, [{ url: '/' }]);
  });
});
