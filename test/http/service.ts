import assert from 'node:assert/strict';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { Agent, request } from 'undici';
import type { DashboardDeps } from '../../src/dashboard/page.ts';
import { makeApp } from '../../src/http/app.ts';
import type { HttpDeps } from '../../src/http/deps.ts';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { makeWithFiles } from '../../src/intake/attachments.ts';
import { issueKeyForOperator } from '../../src/accounts/keys.ts';
import { gatherEmails } from '../../src/intake/emails.ts';
import { type OrganizationLimits, UNLIMITED_ORGANIZATION } from '../../src/accounts/organization-limits.ts';
import { makeCallbackLimits } from '../../src/intake/callback-limits.ts';
import { makeNetworkLimits } from '../../src/intake/network-limits.ts';
import { makeConnectionShares } from '../../src/intake/connection-shares.ts';
import { makeBatchSlots } from '../../src/intake/batch-slots.ts';
import { makeQuotaQueue } from '../../src/intake/quota-queue.ts';
import { startRateLimits } from '../../src/intake/rate-limits.ts';
import { serveDashboard } from '../../src/main/wiring/dashboard.ts';
import { serveSite } from '../../src/site/serve.ts';
import { makeTagRegistry } from '../../src/intake/tag-registry.ts';
import { makePublicFetch } from '../../src/public-fetch/fetch.ts';
import type { SenderDomainDeps } from '../../src/sender-domains/deps.ts';
import { diskStore } from '../../src/store/files/disk.ts';
import type { FileStore } from '../../src/store/files/file-store.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { openKeyCache } from '../../src/store/accounts/key-cache.ts';
import { openRequestLog } from '../../src/store/accounts/request-log.ts';
import type { Preset } from '../../src/store/accounts/keys.ts';
import { senderDomains } from '../sender-domains/deps.ts';
import { REACHABLE } from '../public-fetch/web.ts';
import { captureLog } from '../support/captured-log.ts';
import { testDatabase } from '../support/database.ts';
import { SECRET_KEY } from '../support/secret-key.ts';

/** 43 MB, the contract's limit on a request body. */
export const MAX_BODY_BYTES = 43 * 1_048_576;
export { SECRET_KEY };
export const CALLBACK = { user: 'postmark', password: 'päss:word' };
export const POSTMARK_AUTHORIZATION = `Basic ${Buffer.from(`${CALLBACK.user}:${CALLBACK.password}`).toString('base64')}`;
export const CHAT_CALLBACKS = {
  twilioAuthToken: 'a token of Twilio',
  metaAppSecret: 'a secret of Meta',
  metaVerifyToken: 'a verify token of Meta',
};

type Json = Record<string, unknown>;

/** An answer of the API; `body` is its JSON, or undefined. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly body: unknown;
}

export interface Call {
  readonly key?: string | undefined;
  /** Sent as JSON; `raw` is sent unchanged. */
  readonly json?: unknown;
  readonly raw?: string | Buffer;
  readonly headers?: Record<string, string>;
}

let count = 0;

export type Service = Awaited<ReturnType<typeof startService>>;
/** An organization with a full_access key and a verified domain. */
export type Organization = Awaited<ReturnType<Service['organization']>>;
type Ask = (method: string, path: string, call?: Call) => Promise<Answer>;

/** Dependencies of the API, and settings of those that `startService` creates. */
interface Options extends Partial<HttpDeps & DashboardDeps> {
  readonly perSecond?: { readonly requests: number; readonly mails: number; readonly domains?: number };
  readonly organizationLimits?: Partial<OrganizationLimits>;
  /** True if the log of API requests is on. */
  readonly logsRequests?: boolean;
}

/**
 * Starts the API on its own port with its own database. Every answer is checked by `checkAnswer`.
 * @param domains dependencies of domain checks; by default there is no DNS
 */
export async function startService(
  {
    perSecond = { requests: 10_000, mails: 10_000 },
    organizationLimits = {},
    logsRequests = false,
    ...options
  }: Options = {},
  domains: Partial<SenderDomainDeps> = {},
) {
  const database = await testDatabase(10);
  const pool = options.pool ?? database.pool;
  const keys = openKeyCache(pool, () => undefined);
  const requestLog = logsRequests ? openRequestLog(pool, () => undefined) : undefined;
  const limits = startRateLimits(pool, perSecond, () => undefined);
  const perOrganization = { ...UNLIMITED_ORGANIZATION, ...organizationLimits };
  const { log, lines } = captureLog('trace');
  let wakes = 0;
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'sendwright-folder-'));
  const files: FileStore = diskStore(folder);
  const deps: HttpDeps & DashboardDeps = {
    pool: database.pool,
    shares: makeConnectionShares(pool, pool),
    keys,
    requestLog,
    limits: {
      ...limits,
      quota: makeQuotaQueue(),
      batches: makeBatchSlots(),
      organization: perOrganization,
      tags: makeTagRegistry(pool, perOrganization.tagPairs),
    },
    networks: makeNetworkLimits(0),
    callbackLimits: makeCallbackLimits(),
    trustedProxies: [],
    log,
    secretKey: SECRET_KEY,
    publicUrl: undefined,
    accountEmails: null,
    oidc: null,
    docsSenderDomain: undefined,
    files,
    withFiles: makeWithFiles({
      pool,
      files,
      fetchPublic: makePublicFetch({ allowedCidrs: [REACHABLE] }),
      maxStoredBytes: perOrganization.storedBytes,
    }),
    storeEmail: gatherEmails(pool),
    sharesWorkflows: true,
    contents: makeEmailContents(SECRET_KEY),
    webhookAllowCidrs: [REACHABLE],
    maxBodyBytes: MAX_BODY_BYTES,
    postmarkCallbacks: { credentials: CALLBACK, broadcastStream: 'broadcast' },
    chatCallbacks: CHAT_CALLBACKS,
    // test/http/chat-numbers-verified.test.ts verifies numbers with the simulator.
    verifyNumber: async () => ({ kind: 'verified' }),
    fetchMedia: async () => ({ content: Buffer.from('a file'), release: () => undefined }),
    senderDomains: senderDomains(database.pool, domains),
    wakeRelay: () => wakes++,
    retention: { bodyDays: 0, emailDays: 365, requestLogDays: 7 },
    metrics: { type: 'text/plain', text: async () => '# no metrics\n' },
    ...options,
  };
  const app = await makeApp(deps);
  await serveDashboard(app, deps);
  await serveSite(app, deps);
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const agent = new Agent();

  const call: Ask = async (method, path, { key, json, raw, headers = {} } = {}) => {
    const body = raw ?? (json === undefined ? undefined : JSON.stringify(json));
    const response = await request(url + path, {
      method: method as 'GET',
      dispatcher: agent,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body }),
    });
    const text = await response.body.text();
    const answer = { status: response.statusCode, headers: response.headers, text, body: parse(text) };
    checkAnswer(answer);
    return answer;
  };

  const organization = async (name = `organization ${++count}`) => {
    const { id, api_key: key } = await createOrganization(database.pool, name);
    const domain = `o${++count}.example.com`;
    await registerDomainForOperator(database.pool, id, domain, true);
    /** A minimal valid email with these fields changed; undefined omits a field. */
    const mail = (fields: Json = {}): Json => ({
      from: `Sender <hello@${domain}>`,
      to: `person${++count}@example.net`,
      subject: 'Hello',
      text: 'Hi there.',
      ...fields,
    });
    const ours: Ask = (method, path, given) => call(method, path, { key, ...given });
    const send = (fields?: Json) => ours('POST', '/v1/emails', { json: mail(fields) });
    return {
      id,
      key,
      domain,
      addDomain: async (domainName: string, verified = true) =>
        (await registerDomainForOperator(database.pool, id, domainName, verified)).id,
      /** Connects an SMS sender as the operator does. */
      addSender: (sender: string, countries: readonly string[] = []) => addSender(database.pool, id, sender, countries),
      addKey: async (preset: Preset, domains: readonly string[] = []) =>
        (await issueKeyForOperator(database.pool, id, preset, domains)).api_key,
      mail,
      call: ours,
      send,
      /** Sends an email. @returns its id */
      sent: async (fields?: Json) => bodyOf<{ id: string }>(await send(fields), 202).id,
      email: async (emailId: string) => bodyOf(await ours('GET', `/v1/emails/${emailId}`), 200),
    };
  };

  return {
    url,
    port,
    pool: database.pool,
    databaseUrl: database.url,
    deps,
    /** The store of attachments, and its folder. */
    files,
    folder,
    server: app.server,
    /** The lines of the log. */
    log: lines,
    /** The number of times that intake woke the relay. */
    wakes: () => wakes,
    call,
    organization,
    close: async () => {
      await agent.close();
      await app.close();
      await Promise.all([keys.stop(), limits.stop(), requestLog?.stop()]);
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The API for the tests of a file, closed after them: `const service = await useService();` at the file's top level. */
export async function useService(...options: Parameters<typeof startService>): Promise<Service> {
  const service = await startService(...options);
  after(() => service.close());
  return service;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const REQUEST_ID = /^req_[0-9a-z]{26}$/;
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** Internal details: SQL and its errors, stacks, paths, packages, addresses of servers. */
const INTERNAL =
  /node_modules|node:|\/src\/|\.[tj]s:\d+|\b(?:SELECT|INSERT INTO|UPDATE|RETURNING|relation|column|constraint|syntax)\b|postgres|ECONN|FST_|Ajv|ajv|127\.0\.0\.1|\n {4}at /;

const seen = new Set<string>();

interface ErrorBody {
  readonly errors: readonly { readonly param?: string; readonly message: string }[];
}

/** Every fault of a request: at most 50, one for each field, beginning with the one in `message`. */
function checkFaults(error: Record<string, unknown>, faults: ErrorBody['errors']): void {
  const { message, param } = error;
  assert.deepEqual(faults[0], { ...(param !== undefined && { param }), message });
  assert.ok(faults.length <= 50);
  const params = faults.map((fault) => fault.param);
  assert.equal(new Set(params).size, params.length, 'one fault for each field');
  for (const fault of faults) {
    if (fault.param !== undefined) assert.ok(fault.message.startsWith(`${fault.param}: `), fault.message);
  }
}

/** decisions 1.1 and 1.2: the envelope, the request id, and nothing internal. */
export function checkAnswer({ status, headers, text, body }: Answer): void {
  const id = String(headers['x-request-id']);
  assert.match(id, REQUEST_ID, `1.2: X-Request-Id on every response; ${status} ${text}`);
  assert.ok(!seen.has(id), `1.2: request ids are unique; ${id}`);
  seen.add(id);
  assert.equal(headers['x-powered-by'], undefined);
  assert.equal(headers['server'], undefined);
  assertTimes(body);
  if (status < 400 || text === '') return;
  assert.match(String(headers['content-type']), /^application\/json/, `1.1: an error is JSON; ${text}`);
  const { error } = body as { error: Record<string, unknown> };
  assert.deepEqual(Object.keys(body as object), ['error'], text);
  assert.deepEqual(
    Object.keys(error),
    ['code', 'message', 'param', 'errors', 'docs', 'request_id'].filter(
      (name) => !['param', 'errors'].includes(name) || name in error,
    ),
    `1.1: the envelope; ${text}`,
  );
  const { errors, ...strings } = error;
  for (const value of Object.values(strings)) assert.equal(typeof value, 'string', text);
  assert.ok(String(error['docs']).endsWith(`/docs/errors#${String(error['code'])}`), text);
  if (error['code'] === 'validation_error') checkFaults(error, errors as ErrorBody['errors']);
  else assert.equal(errors, undefined, text);
  assert.equal(error['request_id'], id, `1.1: request_id is the X-Request-Id; ${text}`);
  assert.match(String(error['code']), /^[a-z_]+$/);
  if ('param' in error) {
    assert.ok(
      String(error['message']).startsWith(`${String(error['param'])}: `),
      `1.1: message starts with param; ${text}`,
    );
  }
  // The name of a field is chosen by the caller.
  const ours = String(error['message']).slice('param' in error ? String(error['param']).length : 0);
  assert.doesNotMatch(ours, INTERNAL, `1.2: nothing internal in a body; ${text}`);
}

/** Timestamps: every time in an answer is UTC with milliseconds, or null. */
export function assertTimes(body: unknown): void {
  if (typeof body !== 'object' || body === null) return;
  for (const [name, value] of Object.entries(body)) {
    // Examples of /openapi.json include requests.
    if (/^examples?$/.test(name)) continue;
    if (name.endsWith('_at') && typeof value === 'string') assert.match(value, TIMESTAMP, name);
    assertTimes(value);
  }
}

/** Asserts that an answer is this error. */
export function assertRefused(
  answer: Answer,
  status: number,
  code: string,
  param?: string,
  expected?: string | RegExp,
): void {
  assert.equal(answer.status, status, answer.text);
  const { error } = answer.body as { error: { code: string; message: string; param?: string } };
  assert.equal(error.code, code, answer.text);
  assert.equal(error.param, param, answer.text);
  if (expected instanceof RegExp) assert.match(error.message, expected);
  else if (expected !== undefined) {
    const start = param === undefined ? expected : `${param}: ${expected}`;
    assert.ok(error.message.startsWith(start), `${error.message} does not start with ${start}`);
  }
}

/** Asserts the status. @returns the body, whose type the test knows */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the test knows the type
export function bodyOf<T = Record<string, unknown>>(answer: Answer, status: number): T {
  assert.equal(answer.status, status, answer.text);
  return answer.body as T;
}

/** Reads a list in pages of `limit`. @returns all of its items, in their order */
export async function allPages<T = Record<string, unknown>>(
  organization: Organization,
  path: string,
  limit: number,
): Promise<T[]> {
  const items: T[] = [];
  for (let cursor = ''; ;) {
    const answer = await organization.call('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${cursor}`);
    const { has_more, next_cursor, ...list } = bodyOf<{ has_more: boolean; next_cursor: string | null }>(answer, 200);
    const page = Object.values(list).flat() as T[];
    items.push(...page);
    assert.ok(page.length > 0 || cursor === '', 'only a first page is empty');
    assert.equal(has_more, next_cursor !== null);
    if (next_cursor === null) return items;
    assert.equal(page.length, limit);
    cursor = `&cursor=${next_cursor}`;
  }
}

/** The time after this duration, in the format of the API. */
export function inFuture({ days = 0, hours = 0, ms = 0 }: { days?: number; hours?: number; ms?: number }): string {
  return new Date(Date.now() + days * 86_400_000 + hours * 3_600_000 + ms).toISOString();
}
