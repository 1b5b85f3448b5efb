import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { assertDescribed, isTaken } from '../http/described.ts';
import { type Call, inFuture, type Organization, type Service, startService } from '../http/service.ts';
import { type Ids, thingOf } from '../http/things.ts';
import { edited, hostileEdits, hostileText, hostileValue } from './hostile.ts';

/**
 * Every operation of /openapi.json with its example changed at random: in its path, its query, its headers and its body.
 * Each answer must be one that the description tells of, in time; one that says yes must be to a request that is as
 * described; and no request may leave an error in the log or anything behind in the process.
 */
const RUNS = 60;
/** Milliseconds for one answer, on a machine that has other things to do. */
const WITHIN = 5_000;
const DOCUMENTED = 'example.com';

/** Requests that must be of this hour, where the description has an example of another. */
const BODIES: Readonly<Record<string, unknown>> = {
  'patch /v1/emails/{id}': { scheduled_at: inFuture({ days: 2 }) },
  'post /v1/emails/batch': {
    emails: [
      {
        from: `a@${DOCUMENTED}`,
        to: 'b@example.net',
        subject: 'Hello',
        text: 'Hi.',
        tags: [{ name: 'a', value: 'b' }],
      },
      {
        from: `a@${DOCUMENTED}`,
        to: ['c@example.net'],
        subject: 'Later',
        scheduled_at: inFuture({ days: 2 }),
        html: '<p>',
      },
    ],
  },
};
/** It asks for a signed link, which a random query is not. */
const NEVER_YES = ['get /v1/emails/{id}/attachments/{attachmentId}/download'];

interface Operation {
  readonly parameters?: readonly { name: string; in: string; example?: unknown; examples?: object }[];
  readonly requestBody?: { content: { 'application/json': { example?: unknown } } };
  readonly responses: Readonly<Record<string, unknown>>;
}
type Api = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };

let service: Service;
let ours: Organization;
let api: Api;
before(async () => {
  service = await startService({ perSecond: { requests: 0, mails: 0 } });
  ours = await service.organization();
  await ours.addDomain(DOCUMENTED);
  await ours.call('POST', '/v1/chatapp/numbers', { json: { number: '+12025550142', provider: 'twilio' } });
  api = (await service.call('GET', '/openapi.json')).body as Api;
});
after(() => service.close());

/** What a path's names stand for in one request: `real` is the id of something new. */
const pathPart = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ real: true, text: '' }) },
  hostileText.map((text) => ({ real: false, text: text === '' || /^\.{1,2}$/.test(text) ? 'x' : text })),
);

const aHeader = fc.tuple(
  fc.constantFrom(
    ...['idempotency-key', 'accept', 'accept-encoding', 'accept-language', 'cookie', 'origin', 'referer', 'range'],
    ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-http-method-override', 'if-none-match', 'te'],
    ...['content-type', 'x-request-id', 'forwarded', 'user-agent', 'content-encoding'],
  ),
  hostileText.map((text) => text.replace(/[^\x20-\x7E\x80-\xFF]/gu, '').slice(0, 300)),
);

function seldom<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}

/** What becomes of one operation's example. */
const change = fc.record({
  parts: fc.array(pathPart, { minLength: 3, maxLength: 3 }),
  query: fc.array(fc.tuple(fc.nat(), fc.oneof(hostileText, fc.constant(undefined))), { maxLength: 2 }),
  stranger: seldom(fc.tuple(hostileText, hostileText)),
  edits: hostileEdits,
  unasked: seldom(hostileValue),
  headers: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(aHeader, { maxLength: 2 })),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

interface Request extends Call {
  readonly address: string;
  readonly json?: unknown;
  /** Whether it holds a query parameter that the description does not. */
  readonly strange: boolean;
}

/** @param example of its body, unless it takes none */
function requestOf(path: string, { parameters = [] }: Operation, example: unknown, ids: Ids, change: Change): Request {
  let part = 0;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const { real, text } = change.parts[part++] ?? { real: true, text: '' };
    return real ? encodeURIComponent(ids[name] ?? 'x') : escaped(text);
  });
  const known = parameters.filter((each) => each.in === 'query');
  const query = new URLSearchParams();
  for (const [at, value] of change.query) {
    const one = known[at % (known.length || 1)];
    if (one) query.append(one.name, value ?? exampleOf(one));
  }
  if (change.stranger) query.append(...change.stranger);
  const json = example === undefined ? change.unasked : edited(example, change.edits);
  return {
    address: filled + (query.size > 0 ? `?${query.toString()}` : ''),
    headers: Object.fromEntries(change.headers),
    strange: change.stranger !== undefined && !known.some(({ name }) => name === change.stranger?.[0]),
    ...(json !== undefined && { json }),
  };
}

function exampleOf({ example, examples }: { example?: unknown; examples?: object }): string {
  const [first] = Object.values(examples ?? {}) as { value: unknown }[];
  const value = example ?? first?.value;
  return typeof value === 'string' ? value : JSON.stringify(value ?? 1);
}

/** As it stands in a path; a lone surrogate as its bytes, which are no UTF-8. */
function escaped(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}

async function inTime<T>(what: string, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} is not answered`)), WITHIN);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

/** Errors of ours that were logged since. */
function errorsSince(line: number): string[] {
  return service.log.slice(line).filter((each) => (JSON.parse(each) as { level: number }).level >= 50);
}

describe('an operation of /openapi.json', () => {
  it(`answers whatever it is asked as its description says, ${RUNS} times each`, { timeout: 200_000 }, async (t) => {
    const members = Object.getOwnPropertyNames(Object.prototype);
    let operations = 0;
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        operations++;
        const name = `${method} ${path}`;
        await t.test(name, async () => {
          const statuses = new Map<number, number>();
          const example = BODIES[name] ?? operation.requestBody?.content['application/json'].example;
          const began = service.log.length;
          const make = thingOf(path.replace(/\{(\w+)\}/g, ':$1')) ?? (async () => ({}));
          let ids = await make(ours);
          const ask = async (change: Change): Promise<void> => {
            const { address, strange, ...call } = requestOf(path, operation, example, ids, change);
            const what = `${method} ${address} ${JSON.stringify(call)}`;
            const answer = await inTime(what, ours.call(method.toUpperCase(), address, call));
            statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
            assert.ok(answer.status < 500, `${what}: ${answer.status} ${answer.text}`);
            if (answer.status !== 204 && answer.body !== undefined) assertDescribed(api, path, method, answer);
            else assert.ok(operation.responses[answer.status], `${what}: ${answer.status}`);
            if (answer.status >= 300) return;
            assert.ok(!strange, `${what}: a query parameter that nobody knows was taken`);
            if (operation.requestBody) {
              assert.ok(isTaken(api, path, method, call.json), `${what}: taken, but not as described`);
            }
            if (method !== 'get') ids = await make(ours);
          };
          await ask({ parts: [], query: [], stranger: undefined, edits: [], unasked: undefined, headers: [] });
          await fc.assert(fc.asyncProperty(change, ask), { numRuns: RUNS });
          assert.deepEqual(errorsSince(began), []);
          const saidYes = [...statuses.keys()].some((status) => status < 300);
          assert.equal(saidYes, !NEVER_YES.includes(name), `${name}: ${JSON.stringify([...statuses])}`);
        });
      }
    }
    assert.ok(operations >= 46, `${operations} operations`);
    assert.deepEqual(Object.getOwnPropertyNames(Object.prototype), members);
    assert.equal((await service.call('GET', '/readyz')).status, 200);
  });
});
