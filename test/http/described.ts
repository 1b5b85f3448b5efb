import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Answer } from './service.ts';

type Json = Record<string, unknown>;

/** As much of an API description as it takes to find an operation's answers in it. */
export interface Described {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, unknown>> }>>>
  >;
}

/** A schema that takes nothing but what it names. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [key, closed(value)]);
  const result = Object.fromEntries(entries) as Json;
  const names = result['type'] === 'object' && 'properties' in result && !('additionalProperties' in result);
  return names ? { ...result, additionalProperties: false } : result;
}

/** The answer is one that the document tells of: its status is listed, and its body is of that form, with nothing more. */
export function assertDescribed(api: Described, path: string, method: string, { status, body, text }: Answer): void {
  const operation = api.paths[path]?.[method];
  assert.ok(operation?.responses[status], `${method} ${path} does not list ${status}; ${text}`);
  assertForm(api, path, method, status, body);
}

/** A body is of the form that the document gives for an operation's answer of a status. */
export function assertForm(api: Described, path: string, method: string, status: number, body: unknown): void {
  const validate = validatorOf(api, [
    path,
    method,
    'responses',
    String(status),
    'content',
    'application/json',
    'schema',
  ]);
  const problem = () =>
    `${method} ${path} ${status}: ${ajvOf(api).errorsText(validate.errors)}; ${JSON.stringify(body)}`;
  assert.ok(validate(body), validate.errors ? problem() : undefined);
}

/** What an endpoint was posted is of the form that the document gives for events of its type. */
export function assertEvent(api: Described, event: { readonly type: string }): void {
  const [name = ''] = event.type.replace('.received', 'Received').split('.');
  const place = [name, 'post', 'requestBody', 'content', 'application/json', 'schema'];
  const validate = validatorOf(api, place, 'webhooks');
  assert.ok(validate(event), `${ajvOf(api).errorsText(validate.errors)}; ${JSON.stringify(event)}`);
}

/** Whether a body is one that the document says an operation takes. */
export function isTaken(api: Described, path: string, method: string, body: unknown): boolean {
  return validatorOf(api, [path, method, 'requestBody', 'content', 'application/json', 'schema'])(body);
}

const known = new WeakMap<Described, { ajv: Ajv2020; validators: Map<string, ValidateFunction> }>();

function ajvOf(api: Described): Ajv2020 {
  return memoryOf(api).ajv;
}

function memoryOf(api: Described) {
  let memory = known.get(api);
  if (!memory) {
    const ajv = new Ajv2020({ strict: false, formats: { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ } });
    ajv.addSchema(closed(api) as Json, 'api');
    known.set(api, (memory = { ajv, validators: new Map() }));
  }
  return memory;
}

/** A validator for what stands at this place below the paths, or the webhooks, of a document. */
function validatorOf(api: Described, place: readonly string[], part: 'paths' | 'webhooks' = 'paths'): ValidateFunction {
  const { ajv, validators } = memoryOf(api);
  const pointer = [part, ...place]
    .map((part) => part.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D'))
    .join('/');
  const validate = validators.get(pointer) ?? ajv.compile({ $ref: `api#/${pointer}` });
  validators.set(pointer, validate);
  return validate;
}
