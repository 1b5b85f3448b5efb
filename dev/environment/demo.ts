import { randomBytes, randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '../../src/domain/errors.ts';
import { newId } from '../../src/lib/ids.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { addressOf } from '../../src/domain/sms/senders.ts';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { listSenders } from '../../src/store/sms/senders.ts';
import { issueKeyForOperator, parseApiKey } from '../../src/accounts/keys.ts';
import { createUser } from '../../src/accounts/users.ts';
import { CONTENTS } from '../simulator/twilio/contents.ts';
import { organizationExists } from '../../src/store/accounts/organizations.ts';
import { addContents } from '../../src/store/chat/contents.ts';
import { insertNumber, listNumbers } from '../../src/store/chat/numbers.ts';
import { findDomains } from '../../src/store/domains/domains.ts';
import { findKey } from '../../src/store/accounts/keys.ts';
import { isDuplicate, makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { findMember, findUserByEmail } from '../../src/store/accounts/users.ts';
import type { Progress } from './progress.ts';
import { type Demo, type DemoSecrets, type Secrets, writeSecrets } from './secrets.ts';

const DOMAIN = 'demo.sendwright.example';
/** Reserved for fiction (NANP 555-01XX). */
const NUMBER = '+12025550142';
const SMS_NUMBER = '+12025550143';
/** Not an assigned area code: the prefix for further demonstrations in one database. */
const OTHER_NUMBERS = '+1555';
const USER = 'owner@demo.sendwright.example';
const RECIPIENT = 'you@example.com';
const POLL_INTERVAL_MS = 50;
/** Not every provider reports deliveries. */
const REPORT_TIMEOUT_MS = 5_000;
const SENT_TIMEOUT_MS = 30_000;

/** The demonstration organization with the sender of its SMS. */
export type RunningDemo = Demo & { readonly sms_from: string };

/** The fields of `GET /v1/emails/:id` that are shown. */
export interface DemoEmail {
  readonly id: string;
  readonly to: readonly string[];
  readonly status: string;
  readonly error: string | null;
  readonly events: readonly { readonly type: string; readonly created_at: string }[];
}

/**
 * Returns the demonstration organization of the last start, or creates one if it is not in the database. It has an API key, a
 * verified domain, a chat-app number, an SMS sender and a dashboard user; deleted ones are created again.
 */
export async function demoOrganization(databaseUrl: string, path: string, secrets: Secrets): Promise<RunningDemo> {
  const pool = makePool(databaseUrl, 'start', 1, () => undefined);
  try {
    const demo = await findOrCreateDemo(pool, path, secrets);
    await ensureNumber(pool, demo.organization_id);
    const sms_from = await ensureSender(pool, demo.organization_id);
    return { ...(await ensureUser(pool, demo, path, secrets)), sms_from };
  } finally {
    await pool.end();
  }
}

async function findOrCreateDemo(pool: Pool, path: string, secrets: Secrets): Promise<DemoSecrets> {
  const demo = (await completeDemo(pool, secrets.demo)) ?? (await createDemo(pool));
  if (demo !== secrets.demo) await writeSecrets(path, { ...secrets, demo });
  return demo;
}

/** @returns undefined if the organization does not exist; `demo` itself if nothing is missing */
async function completeDemo(pool: Pool, demo: DemoSecrets | undefined): Promise<DemoSecrets | undefined> {
  if (!demo || !(await organizationExists(pool, demo.organization_id))) return undefined;
  const { organization_id: orgId, api_key, domain } = demo;
  const hasKey = await isActiveKey(pool, api_key);
  const [found] = await findDomains(pool, orgId, [domain]);
  const isVerified = found?.status === 'verified';
  if (hasKey && isVerified) return demo;
  return {
    ...demo,
    api_key: hasKey ? api_key : (await issueKeyForOperator(pool, orgId, 'full_access', [])).api_key,
    domain: isVerified ? domain : await createVerifiedDomain(pool, orgId),
  };
}

async function createDemo(pool: Pool): Promise<DemoSecrets> {
  const { id, api_key } = await createOrganization(pool, 'Demo');
  return { organization_id: id, api_key, domain: await createVerifiedDomain(pool, id) };
}

async function isActiveKey(pool: Pool, apiKey: string): Promise<boolean> {
  const parsed = parseApiKey(apiKey);
  return parsed !== undefined && (await findKey(pool, parsed.id)) !== undefined;
}

/** Verifies the demonstration domain, with a random prefix if another organization in a shared database has verified it. */
async function createVerifiedDomain(pool: Pool, organization: string): Promise<string> {
  for (const name of [DOMAIN, `${randomBytes(4).toString('hex')}.${DOMAIN}`]) {
    try {
      return (await registerDomainForOperator(pool, organization, name, true)).name;
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === 'conflict')) throw error;
    }
  }
  throw new Error(`the domain ${DOMAIN} could not be added`);
}

async function ensureUser(pool: Pool, demo: DemoSecrets, path: string, secrets: Secrets): Promise<Demo> {
  const { organization_id: orgId, dashboard: known } = demo;
  const user = known && (await findUserByEmail(pool, known.email));
  if (known && user && (await findMember(pool, orgId, user.id))) return { ...demo, dashboard: known };
  // In a shared database another demonstration may have the address without prefix.
  const isFree = (await findUserByEmail(pool, USER)) === undefined;
  const email = isFree ? USER : `${randomBytes(4).toString('hex')}.${USER}`;
  const { password = '' } = await createUser(pool, orgId, { email });
  const complete = { ...demo, dashboard: { email, password } };
  await writeSecrets(path, { ...secrets, demo: complete });
  return complete;
}

/** The simulator's contents, as the operator assigns them to each number. */
const TEMPLATES = CONTENTS.map(({ name, language, sid, variables }) => ({
  name,
  language,
  contentSid: sid,
  variables: Object.keys(variables),
}));

/** Adds one number unless the organization has one. With a single number, messages need not name it. */
async function ensureNumber(pool: Pool, organization: string): Promise<void> {
  const [connected] = await listNumbers(pool, organization, null, 1);
  if (connected) {
    if (connected.number === NUMBER || connected.number.startsWith(OTHER_NUMBERS))
      await addContents(pool, connected.id, TEMPLATES, 'keep');
    return;
  }
  const own = { provider: 'twilio', phone_number_id: null, account_sid: null, templates: [] } as const;
  // In a shared database another organization may have the first number.
  for (const number of [NUMBER, `${OTHER_NUMBERS}${randomInt(1_000_000, 10_000_000)}`]) {
    try {
      const id = newId('num');
      await insertNumber(pool, organization, { ...own, id, number, verified_by: 'operator' }, null);
      await addContents(pool, id, TEMPLATES, 'keep');
      return;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
  }
  throw new Error(`the number ${NUMBER} could not be connected`);
}

/** Adds one sender for all countries, unless the organization has a sender. @returns its number */
async function ensureSender(pool: Pool, organization: string): Promise<string> {
  const [connected] = await listSenders(pool, organization, null, 1);
  if (connected) return addressOf(connected);
  // In a shared database another organization may have the first number.
  for (const number of [SMS_NUMBER, `${OTHER_NUMBERS}${randomInt(1_000_000, 10_000_000)}`]) {
    try {
      return addressOf(await addSender(pool, organization, number, []));
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === 'conflict')) throw error;
    }
  }
  throw new Error(`the number ${SMS_NUMBER} could not be connected`);
}

export function demoRequest(domain: string) {
  return {
    from: `Sendwright <hello@${domain}>`,
    to: RECIPIENT,
    subject: 'It works',
    text: 'This email went the whole way: API, Postgres, Temporal, worker, provider.',
  };
}

/**
 * Sends the demonstration email and waits some seconds for its final status.
 * @throws Error if the API refuses it, or it is not sent within 30 s
 */
async function sendDemo(
  baseUrl: string,
  { api_key, domain }: Pick<DemoSecrets, 'api_key' | 'domain'>,
  signal: AbortSignal,
): Promise<DemoEmail> {
  const headers = { authorization: `Bearer ${api_key}`, 'content-type': 'application/json' };
  const accepted = await ask<{ id: string }>(`${baseUrl}/v1/emails`, {
    method: 'POST',
    signal,
    headers,
    body: JSON.stringify(demoRequest(domain)),
  });
  const started = Date.now();
  let sentAt: number | undefined;
  for (;;) {
    const email = await ask<DemoEmail>(`${baseUrl}/v1/emails/${accepted.id}`, { headers, signal });
    // The report of the delivery may arrive before our own record of the send.
    const isOvertaken = email.status === 'delivered' && !email.events.some(({ type }) => type === 'email.sent');
    if (email.status === 'sent' || isOvertaken) sentAt ??= Date.now();
    else if (email.status !== 'queued') return email;
    if (sentAt !== undefined && Date.now() - sentAt > REPORT_TIMEOUT_MS) return email;
    if (sentAt === undefined && Date.now() - started > SENT_TIMEOUT_MS) {
      const { emails, has_more: hasMore } = await ask<{ emails: unknown[]; has_more: boolean }>(
        `${baseUrl}/v1/emails?status=queued&limit=100`,
        { headers, signal },
      );
      const waiting = hasMore ? 'more than 100' : emails.length;
      throw new Error(
        `not sent within ${SENT_TIMEOUT_MS / 1_000} s; it will be. ${waiting} emails are queued, it included.`,
      );
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal });
  }
}

/**
 * Sends the demonstration email as a step. If it fails, the reason is printed and the start goes on, since the reason may be
 * one that only the running service can remove: a suspended organization, a used quota, a slow provider.
 * @returns undefined if it failed
 */
export async function tryDemo(
  { progress, signal }: { readonly progress: Progress; readonly signal: AbortSignal },
  baseUrl: string,
  demo: Pick<DemoSecrets, 'api_key' | 'domain'>,
): Promise<DemoEmail | undefined> {
  try {
    return await progress.step('Demonstration email', () => sendDemo(baseUrl, demo, signal));
  } catch (error) {
    signal.throwIfAborted();
    progress.print(`! Demonstration email: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

async function ask<T>(url: string, init: RequestInit): Promise<T> {
  const response = await fetch(url, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${url} answered ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}

/** Formats the email's events with the time of day and the time since the first event. */
export function timeline({ events }: Pick<DemoEmail, 'events'>): string[] {
  const [first] = events;
  if (!first) return [];
  const start = Date.parse(first.created_at);
  return events.map(({ type, created_at }) => {
    const after = `+${Date.parse(created_at) - start} ms`;
    return `${created_at.slice('2000-01-01T'.length, -1)}  ${after.padStart(9)}  ${type}`;
  });
}
