import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { assertDescribed, type Described, isAccepted, operationsOf, type Parameter } from '../http/described.ts';
import { type Ids, resourceOf } from '../http/resources.ts';
import { type Answer, type Call, inFuture, useService } from '../http/service.ts';
import { site } from '../public-fetch/web.ts';
import {
  edited,
  hostileEdits,
  hostileText,
  hostileValue,
  REFUSED_IN_LINES,
  REFUSED_EVERYWHERE,
  UNUSUAL,
  OVERLONG,
  textsOf,
} from './hostile.ts';

/**
 * Sends every operation of /openapi.json its example with changes: random ones in path, query, headers and body, and hostile
 * texts in each text of the body. Each answer must be described, a 2xx only for a request that matches the description, and
 * no request may log an error or change the process.
 */
const RUNS = 60;
const DOCUMENTED = 'example.com';

const FROM = '+12025550142';
const CHAT = { from: FROM, to: '+14165550123' };
const FILE = { filename: 'a.txt', content: 'SGVsbG8=', content_type: 'text/plain', content_id: 'a' };
const COMPONENTS = [{ type: 'body', parameters: [{ type: 'text', text: 'Ada' }] }];
const SID = '0'.repeat(32);

/**
 * Bodies with every text field, where the example lacks some or is accepted only once.
 * @param url of a file
 */
const completeBodies = (url: string): Readonly<Record<string, readonly object[]>> => ({
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
    { ...CHAT, type: 'text', text: 'Hi.' },
    { ...CHAT, type: 'template', template: { name: 'a', language: 'en', components: COMPONENTS } },
    { ...CHAT, type: 'image', image: { link: 'https://example.com/a.png', caption: 'A' } },
    { ...CHAT, type: 'document', text: 'A', document: { link: 'https://example.com/a.pdf', filename: 'a.pdf' } },
  ],
  'post /v1/chatapp/numbers': [
    { number: '+12025550171', provider: 'meta', phone_number_id: '1099', access_token: 'token' },
    {
      ...{ number: '+12025550172', provider: 'twilio', account_sid: `AC${SID}`, auth_token: 'token' },
      templates: [{ name: 'a', language: 'en', content_sid: `HX${SID}`, variables: ['1'] }],
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
/** Operations that leave the resource as it is, so that the next request can use it again. */
const REUSABLE = /^get |\/verify$/;
/** Paths of fields that may contain line breaks. */
const MULTILINE = /(?:^|\.)(?:html|text|caption)$|^template\.components\./;
/** Paths of fields that are limited by the size of the request only. */
const UNLIMITED = /^template\.components\./;

// Without it, tracking cannot be switched on.
const service = await useService({ perSecond: { requests: 0, mails: 0 }, publicUrl: 'https://mail.example.com' });
const ours = await service.organization();
await ours.addDomain(DOCUMENTED);
await ours.addSender('+12025550143');
await ours.call('POST', '/v1/chatapp/numbers', { json: { number: FROM, provider: 'twilio', auth_token: 'token' } });
const api = (await service.call('GET', '/openapi.json')).body as Described;

const targets = operationsOf(api).map((operation) => {
  const name = `${operation.method} ${operation.path}`;
  /** Creates a new resource for the path. */
  const create = async (): Promise<Ids> => (await resourceOf(operation.path)?.(ours)) ?? {};
  const query = (operation.parameters ?? []).filter((each) => each.in === 'query');
  return { ...operation, name, query, create };
});
type Target = (typeof targets)[number];
assert.ok(targets.length >= 46, `${targets.length} operations`);

/** Runs the work for each operation. The log contains no error of it. */
async function forEachTarget(t: TestContext, work: (target: Target) => Promise<void>): Promise<void> {
  for (const target of targets) {
    await t.test(target.name, async () => {
      const firstLine = service.log.length;
      await work(target);
      const errors = service.log.slice(firstLine).filter((each) => (JSON.parse(each) as { level: number }).level >= 50);
      assert.deepEqual(errors, []);
    });
  }
}

/** Sends a request. The answer is one that the description lists. */
async function ask({ path, method, requestBody }: Target, address: string, call: Call): Promise<Answer> {
  const what = `${method} ${address} ${JSON.stringify(call).slice(0, 2_000)}`;
  const answer = await ours.call(method.toUpperCase(), address, call);
  assert.ok(answer.status < 500, `${what}: ${answer.status} ${answer.text}`);
  if (answer.status === 431) {
    // Refused before routing: Node reads 16 KiB of address and headers.
    assert.ok(Buffer.byteLength(address + JSON.stringify(call.headers)) > 15_000, what);
    assert.match(answer.text, /"payload_too_large"/);
    return answer;
  }
  assertDescribed(api, path, method, answer);
  if (answer.status < 300 && requestBody) {
    assert.ok(isAccepted(api, path, method, call.json), `${what}: accepted, but not as described`);
  }
  return answer;
}

const fill = (path: string, value: (name: string) => string) =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => value(name));

function exampleOf({ example, examples = {} }: Parameter): string {
  const [first] = Object.values(examples);
  const value = example ?? first?.value;
  return typeof value === 'string' ? value : JSON.stringify(value ?? 1);
}

/** Percent-encodes a text; a lone surrogate becomes its bytes, which are not UTF-8. */
function encode(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}

/** The text before, inside and after a value: trimming must not hide it. */
function insertions(text: string, value: string): string[] {
  const middle = Math.ceil(value.length / 2);
  return [text + value, value.slice(0, middle) + text + value.slice(middle), value + text];
}

/** The request was refused because of the text that was changed. */
function assertRefused(at: string, text: string, { status, body, text: answered }: Answer): void {
  const what = `${at} ${JSON.stringify(text.slice(0, 100))}: ${status} ${answered}`;
  assert.ok(status === 422 || (status === 413 && text.length > 1_000_000), what);
  if (status === 413) return;
  const { param = '' } = (body as { error: { param?: string } }).error;
  assert.ok(param !== '' && (at.startsWith(param) || param.startsWith(at)), what);
}

/** Undefined, or with this share of 1 a value. */
const optional = <T>(arbitrary: fc.Arbitrary<T>, share: number): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 100 - 100 * share, arbitrary: fc.constant(undefined) }, { weight: 100 * share, arbitrary });
const header = fc.tuple(
  fc.constantFrom(
    ...['idempotency-key', 'accept', 'accept-encoding', 'accept-language', 'cookie', 'origin', 'referer', 'range'],
    ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-http-method-override', 'if-none-match', 'te'],
    ...['content-type', 'x-request-id', 'forwarded', 'user-agent', 'content-encoding'],
  ),
  hostileText.map((text) => text.replace(/[^\x20-\x7E\x80-\xFF]/gu, '').slice(0, 300)),
);
const pathPart = hostileText.map((text) => (/^\.{0,2}$/.test(text) ? 'x' : text));
/** Changes to a request. A part of the path that is undefined stays the id of a resource. */
const change = fc.record({
  parts: fc.array(optional(pathPart, 0.25), { minLength: 3, maxLength: 3 }),
  query: fc.array(fc.tuple(fc.nat(), optional(hostileText, 0.5)), { maxLength: 2 }),
  unknownQuery: optional(fc.tuple(hostileText, hostileText), 0.2),
  edits: hostileEdits,
  unexpectedBody: optional(hostileValue, 0.2),
  headers: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(header, { maxLength: 2 })),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

function requestOf({ path, query, example }: Target, ids: Ids, changes: Change): Call & { address: string } {
  const parts = [...changes.parts];
  const filled = fill(path, (name) => encode(parts.shift() ?? ids[name] ?? 'x'));
  const search = new URLSearchParams();
  for (const [at, value] of changes.query) {
    const parameter = query[at % (query.length || 1)];
    if (parameter) search.append(parameter.name, value ?? exampleOf(parameter));
  }
  if (changes.unknownQuery) search.append(...changes.unknownQuery);
  const json = example === undefined ? changes.unexpectedBody : edited(example, changes.edits);
  return {
    address: filled + (search.size > 0 ? `?${search.toString()}` : ''),
    headers: Object.fromEntries(changes.headers),
    ...(json !== undefined && { json }),
  };
}

describe('an operation of /openapi.json', () => {
  it(`returns only described answers to random requests, ${RUNS} times each`, async (t) => {
    const members = Object.getOwnPropertyNames(Object.prototype);
    await forEachTarget(t, async (target) => {
      const { name, query, create } = target;
      let ids = await create();
      let accepted = 0;
      const askChanged = async (changes: Change): Promise<void> => {
        const { address, ...call } = requestOf(target, ids, changes);
        const { status } = await ask(target, address, call);
        if (status >= 300) return;
        accepted++;
        const [unknown] = changes.unknownQuery ?? [];
        assert.ok(
          unknown === undefined || query.some((each) => each.name === unknown),
          `${address}: unknown parameter`,
        );
        if (!REUSABLE.test(name)) ids = await create();
      };
      const none = { parts: [], query: [], edits: [], headers: [], unknownQuery: undefined, unexpectedBody: undefined };
      await askChanged(none);
      // A new email has the most fields.
      const numRuns = name === 'post /v1/emails' ? 10 * RUNS : RUNS;
      await fc.assert(fc.asyncProperty(change, askChanged), { numRuns });
      // A download requires a signed query.
      assert.equal(accepted > 0, !name.endsWith('/download'), `${accepted} accepted`);
    });
    assert.deepEqual(Object.getOwnPropertyNames(Object.prototype), members);
    assert.equal((await service.call('GET', '/readyz')).status, 200);
  });

  it('takes no control character and nothing overlong in any text of its body', async (t) => {
    let texts = 0;
    const { url } = await site(t, (_, response) => void response.end('a file'));
    const complete = completeBodies(url);
    await forEachTarget(t, async (target) => {
      const { path, name, example, create } = target;
      if (example === undefined) return;
      let ids = await create();
      const askWith = async (json: unknown): Promise<Answer> => {
        const answer = await ask(
          target,
          fill(path, (id) => encodeURIComponent(ids[id] ?? 'x')),
          { json },
        );
        if (answer.status < 300 && !REUSABLE.test(name)) ids = await create();
        return answer;
      };
      for (const body of complete[name] ?? [example]) {
        const { status, text } = await askWith(body);
        assert.ok(status < 300, `${JSON.stringify(body)}: ${text}`);
        for (const { at, value, put } of textsOf(body)) {
          texts++;
          const refused = MULTILINE.test(at) ? REFUSED_EVERYWHERE : [...REFUSED_EVERYWHERE, ...REFUSED_IN_LINES];
          for (const bad of refused.flatMap((each) => insertions(each, value)))
            assertRefused(at, bad, await askWith(put(bad)));
          for (const odd of UNUSUAL) await askWith(put(value + odd));
          if (!UNLIMITED.test(at)) assertRefused(at, OVERLONG, await askWith(put(OVERLONG)));
        }
      }
    });
    assert.ok(texts >= 60, `${texts} texts`);
  });

  it('finds nothing by a control character in its path or its query', async (t) => {
    await forEachTarget(t, async (target) => {
      const { path, query, create } = target;
      const ids = await create();
      const address = (changed?: string, text = '') =>
        fill(path, (name) => encode(insertions(name === changed ? text : '', ids[name] ?? 'x')[1] ?? ''));
      for (const text of ['\0', ...REFUSED_IN_LINES]) {
        for (const changed of [
          ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => address(name, text)),
          ...query.map((each) => `${address()}?${each.name}=${encode(exampleOf(each) + text)}`),
        ]) {
          const { status } = await ask(target, changed, {});
          assert.ok(status >= 400, `${changed}: ${status}`);
        }
      }
    });
  });
});
