import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Answer } from './service.ts';

type Json = Record<string, unknown>;

/** As much of an API description as it takes to find an operation's answers in it. */
interface Described {
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
  const ajv = new Ajv2020({ strict: false, formats: { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ } });
  ajv.addSchema(closed(api) as Json, 'api');
  const pointer = [path, method, 'responses', String(status), 'content', 'application/json', 'schema']
    .map((part) => part.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D'))
    .join('/');
  const validate = ajv.compile({ $ref: `api#/paths/${pointer}` });
  assert.ok(validate(body), `${method} ${path} ${status}: ${ajv.errorsText(validate.errors)}; ${JSON.stringify(body)}`);
}
