import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { assertDescribed, isTaken } from '../http/described.ts';
import { type Answer, type Call, inFuture, useService } from '../http/service.ts';
import { type Ids, resourceOf } from '../http/resources.ts';
import { site } from '../public-fetch/web.ts';
import {
  edited,
  hostileEdits,
  hostileText,
  hostileValue,
  IN_NO_LINE,
  NOWHERE,
  ODD,
  OVERLONG,
  textsOf,
} from './hostile.ts';

/**
 * Every operation of /openapi.json with its example changed: at random in its path, its query, its headers and its body,
 * and by certain texts at each place where a text stands. Each answer must be one that the description tells of, in time;
 * one that says yes must be to a request that is as described; and no request may leave an error in the log or anything
 * behind in the process.
 */
const RUNS = 60;
/** Milliseconds after which an answer is taken to be missing. */
const WITHIN = 60_000;
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
const A_NUMBER = '+12025550142';
const FILE = { filename: 'a.txt', content: 'SGVsbG8=', content_type: 'text/plain', content_id: 'a' };
const COMPONENTS = [{ type: 'body', parameters: [{ type: 'text', text: 'Ada' }] }];
const META = { provider: 'meta', phone_number_id: '1099' };

/**
 * Bodies with a text wherever one may be, where the description's example has not all of them, or is taken only once.
 * @param url where a file is
 */
const wholeBodies = (url: string): Readonly<Record<string, readonly object[]>> => ({
  'post /v1/emails': [
    {
      from: `Ada <a@${DOCUMENTED}>`,
      to: ['b@example.net'],
      cc: 'c@example.net',
      bcc: ['Bob <d@example.net>'],
      reply_to: 'e@example.net',
      subject: 'Hello',
      html: '<p>',
      text: 'Hi.',
      tags: [{ name: 'a', value: 'b' }],
      headers: { 'X-A': 'a' },
      scheduled_at: inFuture({ days: 2 }),
      attachments: [FILE, { filename: 'b.txt', path: url }],
    },
  ],
  'post /v1/chatapp': [
    { from: A_NUMBER, to: '+14165550123', type: 'text', text: 'Hi.' },
    {
      from: A_NUMBER,
      to: '+14165550123',
      type: 'template',
      template: { name: 'a', language: 'en', components: COMPONENTS },
    },
    { from: A_NUMBER, to: '+14165550123', type: 'image', image: { link: 'https://example.com/a.png', caption: 'A' } },
    {
      ...{ from: A_NUMBER, to: '+14165550123', type: 'document', text: 'A' },
      document: { link: 'https://example.com/a.pdf', filename: 'a.pdf' },
    },
  ],
  'post /v1/chatapp/numbers': [
    { number: '+12025550171', ...META, access_token: 'token' },
    {
      ...{ number: '+12025550172', provider: 'twilio', account_sid: `AC${'0'.repeat(32)}`, auth_token: 'token' },
      templates: [{ name: 'a', language: 'en', content_sid: `HX${'0'.repeat(32)}`, variables: ['1'] }],
    },
  ],
  'post /v1/domains': [{ name: 'texts.example.org' }],
  'post /v1/suppressions': [{ email: 'f@example.net' }, { emails: ['g@example.net'] }],
  'patch /v1/webhooks/{id}': [
    { url: 'https://example.com/a', description: 'A', events: ['email.sent'], status: 'enabled' },
  ],
  'post /v1/keys': [
    { preset: 'read_only', name: 'A', expires_at: inFuture({ days: 2 }), allowed_ips: ['203.0.113.7'] },
  ],
});
/** Operations after which the next may ask about the same thing: a domain takes long to make. */
const LEFT_AS_IT_IS = /^get |\/verify$/;
/** Fields that may have several lines, by the ends of their paths. */
const LINES = /(?:^|\.)(?:html|text|caption)$|^template\.components\./;
/** As long as a request may be, and no longer a text of ours. */
const PASSED_ON = /^template\.components\./;
/** It asks for a signed link, which a random query is not. */
const NEVER_YES = ['get /v1/emails/{id}/attachments/{attachmentId}/download'];

interface Operation {
  readonly parameters?: readonly { name: string; in: string; example?: unknown; examples?: object }[];
  readonly requestBody?: { content: { 'application/json': { example?: unknown } } };
  readonly responses: Readonly<Record<string, unknown>>;
}
type Api = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };

const service = await useService({ perSecond: { requests: 0, mails: 0 } });
const ours = await service.organization();
await ours.addDomain(DOCUMENTED);
await ours.call('POST', '/v1/chatapp/numbers', {
  json: { number: '+12025550142', provider: 'twilio', auth_token: 'token' },
});
const api = (await service.call('GET', '/openapi.json')).body as Api;

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

/** One operation as a test meets it. */
interface Tried {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
  /** As BODIES names it. */
  readonly name: string;
  /** Makes something new that its path can name. */
  readonly make: () => Promise<Ids>;
}

function everyOperation(): Tried[] {
  const all = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Tried => {
      const make = resourceOf(path.replace(/\{(\w+)\}/g, ':$1'));
      return { path, method, operation, name: `${method} ${path}`, make: async () => make?.(ours) ?? {} };
    }),
  );
  assert.ok(all.length >= 46, `${all.length} operations`);
  return all;
}

/** Asks, and holds the answer to the description. */
async function ask({ path, method, operation }: Tried, address: string, call: Call): Promise<Answer> {
  const what = `${method} ${address} ${shown(call)}`;
  const answer = await inTime(what, ours.call(method.toUpperCase(), address, call));
  assert.ok(answer.status < 500, `${what}: ${answer.status} ${answer.text}`);
  if (answer.status === 431) {
    // Refused before anybody asked which operation it is for: Node reads 16 KiB of address and headers.
    assert.ok(Buffer.byteLength(address + JSON.stringify(call.headers)) > 15_000, what);
    assert.match(answer.text, /"payload_too_large"/);
    return answer;
  }
  if (answer.status !== 204 && answer.body !== undefined) assertDescribed(api, path, method, answer);
  else assert.ok(operation.responses[answer.status], `${what}: ${answer.status}`);
  if (answer.status < 300 && operation.requestBody) {
    assert.ok(isTaken(api, path, method, call.json), `${what}: taken, but not as described`);
  }
  return answer;
}

function shown(call: Call): string {
  return JSON.stringify(call).slice(0, 2_000);
}

describe('an operation of /openapi.json', () => {
  it(`answers whatever it is asked as its description says, ${RUNS} times each`, async (t) => {
    const members = Object.getOwnPropertyNames(Object.prototype);
    for (const tried of everyOperation()) {
      const { path, operation, name, make } = tried;
      await t.test(name, async () => {
        const statuses = new Map<number, number>();
        const example = BODIES[name] ?? operation.requestBody?.content['application/json'].example;
        const began = service.log.length;
        let ids = await make();
        const askChanged = async (change: Change): Promise<void> => {
          const { address, strange, ...call } = requestOf(path, operation, example, ids, change);
          const { status } = await ask(tried, address, call);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          if (status >= 300) return;
          assert.ok(!strange, `${address}: a query parameter that nobody knows was taken`);
          if (!LEFT_AS_IT_IS.test(name)) ids = await make();
        };
        await askChanged({ parts: [], query: [], stranger: undefined, edits: [], unasked: undefined, headers: [] });
        await fc.assert(fc.asyncProperty(change, askChanged), { numRuns: RUNS });
        assert.deepEqual(errorsSince(began), []);
        const saidYes = [...statuses.keys()].some((status) => status < 300);
        assert.equal(saidYes, !NEVER_YES.includes(name), `${name}: ${JSON.stringify([...statuses])}`);
      });
    }
    assert.deepEqual(Object.getOwnPropertyNames(Object.prototype), members);
    assert.equal((await service.call('GET', '/readyz')).status, 200);
  });

  it('takes no control character and nothing overlong in any text of its body', async (t) => {
    let texts = 0;
    const { url } = await site(t, (_, response) => void response.end('a file'));
    const whole = wholeBodies(url);
    for (const tried of everyOperation()) {
      const { path, operation, name, make } = tried;
      const example = BODIES[name] ?? operation.requestBody?.content['application/json'].example;
      if (example === undefined) continue;
      await t.test(name, async () => {
        const began = service.log.length;
        let ids = await make();
        const askWith = async (json: unknown): Promise<Answer> => {
          const address = path.replace(/\{(\w+)\}/g, (_, id: string) => encodeURIComponent(ids[id] ?? 'x'));
          const answer = await ask(tried, address, { json });
          if (answer.status < 300 && !LEFT_AS_IT_IS.test(name)) ids = await make();
          return answer;
        };
        for (const body of whole[name] ?? [example]) {
          const { status, text } = await askWith(body);
          assert.ok(status < 300, `${name} ${JSON.stringify(body)}: ${text}`);
          for (const { at, value, put } of textsOf(body)) {
            texts++;
            const refused = LINES.test(at) ? NOWHERE : [...NOWHERE, ...IN_NO_LINE];
            for (const bad of refused.flatMap((each) => placed(each, value)))
              assertNotTaken(at, bad, await askWith(put(bad)));
            for (const odd of ODD) await askWith(put(value + odd));
            if (!PASSED_ON.test(at)) assertNotTaken(at, OVERLONG, await askWith(put(OVERLONG)));
          }
        }
        assert.deepEqual(errorsSince(began), []);
      });
    }
    assert.ok(texts >= 60, `${texts} texts`);
  });

  it('finds nothing by a control character in its path or its query', async (t) => {
    for (const tried of everyOperation()) {
      const { path, operation, name, make } = tried;
      const known = (operation.parameters ?? []).filter((each) => each.in === 'query');
      const parts = [...path.matchAll(/\{(\w+)\}/g)].map(([, part = '']) => part);
      if (known.length + parts.length === 0) continue;
      await t.test(name, async () => {
        const began = service.log.length;
        const ids = await make();
        const filled = (bad?: string, text = '') =>
          path.replace(/\{(\w+)\}/g, (_, part: string) => {
            const id = ids[part] ?? 'x';
            return part === bad ? (placed(text, id).map(escaped)[1] ?? '') : encodeURIComponent(id);
          });
        for (const text of ['\0', ...IN_NO_LINE]) {
          const addresses = [
            ...parts.map((part) => filled(part, text)),
            ...known.map((one) => `${filled()}?${one.name}=${escaped(exampleOf(one))}${escaped(text)}`),
          ];
          for (const address of addresses) {
            const { status } = await ask(tried, address, {});
            assert.ok(status >= 400, `${name} ${address}: ${status}`);
          }
        }
        assert.deepEqual(errorsSince(began), []);
      });
    }
  });
});

/** A text before, in the middle of and behind another one: what trims must not hide it. */
function placed(text: string, value: string): string[] {
  const middle = Math.ceil(value.length / 2);
  return [text + value, value.slice(0, middle) + text + value.slice(middle), value + text];
}

/** Refused, and for the very text that was changed. */
function assertNotTaken(at: string, text: string, { status, body, text: answered }: Answer): void {
  const what = `${at} ${JSON.stringify(text.slice(0, 100))}: ${status} ${answered}`;
  assert.ok(status === 422 || (status === 413 && text.length > 1_000_000), what);
  if (status === 413) return;
  const { param = '' } = (body as { error: { param?: string } }).error;
  assert.ok(param !== '' && (at.startsWith(param) || param.startsWith(at)), what);
}
