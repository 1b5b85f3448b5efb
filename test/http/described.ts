import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Answer } from './service.ts';

type Json = Record<string, unknown>;

export interface Schema {
  readonly $ref?: string;
  readonly type?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly examples?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
}
export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}
interface Part {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: { readonly 'application/json'?: JsonContent };
}
interface JsonContent {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: { readonly error: Json } }>>;
}
export interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Part;
  readonly responses: Readonly<Record<string, Part>>;
}

/** The parts of an API description that tests read. */
export interface Described {
  readonly servers?: unknown;
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly headers: Readonly<Record<string, { readonly description: string }>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
}

/** All operations, as `{ method: 'get', path: '/v1/emails/{id}', example, … }`; `example` is that of the body. */
export function operationsOf({ paths }: Described) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const example = operation.requestBody?.content?.['application/json']?.example;
      return { ...operation, path, method, name: `${method.toUpperCase()} ${path}`, example };
    }),
  );
}

/** A schema that accepts no other fields than it lists. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [key, closed(value)]);
  const result = Object.fromEntries(entries) as Json;
  const names = result['type'] === 'object' && 'properties' in result && !('additionalProperties' in result);
  return names ? { ...result, additionalProperties: false } : result;
}

/** Asserts that the description lists the status of an answer, and that its body matches the schema and has no other fields. */
export function assertDescribed(api: Described, path: string, method: string, { status, body, text }: Answer): void {
  assert.ok(api.paths[path]?.[method]?.responses[status], `${method} ${path} does not list ${status}; ${text}`);
  if (body !== undefined) assertBody(api, path, method, status, body);
}

/** Asserts that a body matches the schema of an operation's answer of a status. */
export function assertBody(api: Described, path: string, method: string, status: number, body: unknown): void {
  assertValid(api, ['paths', path, method, 'responses', String(status), ...SCHEMA], body);
}

/** Asserts that an event matches the schema of events of its type. */
export function assertEvent(api: Described, event: { readonly type: string }): void {
  const name = event.type.replace('.received', 'Received').split('.', 1).join();
  assertValid(api, ['webhooks', name, 'post', 'requestBody', ...SCHEMA], event);
}

/** @returns true if a body matches the schema of an operation's request */
export function isAccepted(api: Described, path: string, method: string, body: unknown): boolean {
  return validatorOf(api, ['paths', path, method, 'requestBody', ...SCHEMA])(body);
}

const SCHEMA = ['content', 'application/json', 'schema'];

const cache = new WeakMap<Described, { ajv: Ajv2020; validators: Map<string, ValidateFunction> }>();

function assertValid(api: Described, place: readonly string[], body: unknown): void {
  const validate = validatorOf(api, place);
  if (!validate(body)) assert.fail(`${place.join(' ')}: ${JSON.stringify(validate.errors)}; ${JSON.stringify(body)}`);
}

/** A validator for the schema at this place of a description. */
function validatorOf(api: Described, place: readonly string[]): ValidateFunction {
  let cached = cache.get(api);
  if (!cached) {
    const ajv = new Ajv2020({ strict: false, formats: { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ } });
    ajv.addSchema(closed(api) as Json, 'api');
    cache.set(api, (cached = { ajv, validators: new Map() }));
  }
  const pointer = place
    .map((part) => part.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D'))
    .join('/');
  const validate = cached.validators.get(pointer) ?? cached.ajv.compile({ $ref: `api#/${pointer}` });
  cached.validators.set(pointer, validate);
  return validate;
}
