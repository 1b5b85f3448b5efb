import { readFile } from 'node:fs/promises';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { writeAtomically } from '../environment/atomic-file.ts';
import { describeApi } from './api-description.ts';
import { inRoot } from './compile.ts';

/** `npm run client:types`: writes client/openapi.ts, the types of the API, from /openapi.json. */
const FILE = inRoot('client/openapi.ts');
const HEADING = '/** Types of the API, generated from /openapi.json by `npm run client:types`. */\n\n';

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { responses: Record<string, Response> }>>>>;
}
interface Response {
  headers?: unknown;
}

/** Removes error responses, headers, whole examples and the times in examples, which change every day. */
function simplify(description: object): OpenAPI3 {
  const api = JSON.parse(JSON.stringify(description), (key, value: unknown) =>
    key === 'example' || (key === 'examples' && Array.isArray(value) && value.some(isTime)) ? undefined : value,
  ) as Description;
  for (const operation of Object.values(api.paths).flatMap((methods) => Object.values(methods))) {
    const responses = Object.entries(operation.responses).filter(([status]) => Number(status) < 400);
    operation.responses = Object.fromEntries(responses);
    for (const [, response] of responses) delete response.headers;
  }
  return api as unknown as OpenAPI3;
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value);
}

const types = HEADING + astToString(await openapiTS(simplify(await describeApi()), { silent: true }));
// An unchanged file keeps its modification time, so that `npm start` does not compile the sources again.
if ((await readFile(FILE, 'utf8').catch(() => '')) !== types) await writeAtomically(FILE, types);
