import { readFile } from 'node:fs/promises';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { pino } from 'pino';
import { makeApp } from '../../src/http/app.ts';
import type { HttpDeps } from '../../src/http/deps.ts';
import { writeAtomically } from '../environment/atomic-file.ts';
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

/** Returns /openapi.json. Only the routes determine it: nothing connects to a database, and no handler is called. */
async function describeApi(): Promise<string> {
  const deps = {
    log: pino({ level: 'silent' }),
    secretKey: FILE,
    trustedProxies: [],
    limits: {},
    senderDomains: {},
    webhookAllowCidrs: [],
    postmarkCallbacks: {},
    chatCallbacks: {},
    metrics: {},
  };
  const app = await makeApp(deps as unknown as HttpDeps);
  const { payload } = await app.inject('/openapi.json');
  await app.close();
  return payload;
}

/** Removes error responses, headers, whole examples and example times: the times in examples change every day. */
function simplify(description: string): OpenAPI3 {
  const api = JSON.parse(description, (key, value: unknown) =>
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
// An unchanged file keeps its time, so that `npm start` does not compile the sources again.
if ((await readFile(FILE, 'utf8').catch(() => '')) !== types) await writeAtomically(FILE, types);
