import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { format, resolveConfig } from 'prettier';
import { startService } from '../http/service.ts';

const FILE = fileURLToPath(new URL('../../client/openapi.ts', import.meta.url));
const HEADING = '/** Types of the API, made from /openapi.json by `npm run client:types`. Not written by hand. */\n\n';

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { responses: Record<string, Answer> }>>>>;
}
interface Answer {
  headers?: unknown;
}

/** Without error responses, headers, whole examples, and example times: the times in examples change every day. */
function plain(description: string): OpenAPI3 {
  const api = JSON.parse(description, (key, value: unknown) =>
    key === 'example' || (key === 'examples' && Array.isArray(value) && value.some(isTime)) ? undefined : value,
  ) as Described;
  for (const operation of Object.values(api.paths).flatMap((methods) => Object.values(methods))) {
    const answers = Object.entries(operation.responses).filter(([status]) => Number(status) < 400);
    operation.responses = Object.fromEntries(answers);
    for (const [, answer] of answers) delete answer.headers;
  }
  return api as unknown as OpenAPI3;
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value);
}

test('the types of the client are those of the API: npm run client:types writes them', async (t) => {
  const service = await startService();
  t.after(() => service.close());
  const { text } = await service.call('GET', '/openapi.json');
  const types = astToString(await openapiTS(plain(text), { silent: true }));
  const made = await format(HEADING + types, { ...(await resolveConfig(FILE)), parser: 'typescript' });
  if (process.env['CLIENT_TYPES'] === 'write') await writeFile(FILE, made);
  assert.ok((await readFile(FILE, 'utf8')) === made, 'client/openapi.ts is out of date: npm run client:types');
});
