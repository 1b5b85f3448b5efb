import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { makeEmailActivities } from '../../activities/index.ts';
import { makeProviderLine } from '../../src/delivery/line.ts';
import { makeProviderPauses } from '../../src/delivery/pauses.ts';
import { makeAttemptRecorder } from '../../src/delivery/call.ts';
import { accountLinkSeal } from '../../src/domain/email/account-link.ts';
import { ServiceError } from '../../src/domain/errors.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import {
  acceptEmail,
  cancelEmail,
  gatherEmails,
  type IntakeDeps,
  noLimits,
  PLAIN_REQUEST,
} from '../../src/intake/emails.ts';
import { UNTRACKED } from '../../src/domain/email/tracked-links.ts';
import type { EmailProvider } from '../../src/providers/email-provider.ts';
import { startRelay } from '../../src/relay/relay.ts';
import { makeTemporalDispatcher } from '../../src/relay/temporal.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { findEmail } from '../../src/store/emails/emails.ts';
import { testDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { testNamespace } from '../support/temporal.ts';
import { silenceTemporal, workflowBundle } from '../support/workflows.ts';

const EMAILS = 500;
/** Milliseconds until all are due. If by then some have no workflow yet, new emails are accepted, due after the next of these. */
const DUE_IN = [20_000, 40_000, 80_000, 160_000];
/** Milliseconds before and after that instant over which the first cancels are spread. */
const SPREAD_MS = 1_000;
/** How many these are. Of the others, two are canceled for each email that is sent. */
const FIRST = EMAILS / 5;
const contents = makeEmailContents(SECRET_KEY);
const RETRY = { maximumAttempts: 3, initialInterval: 500, maximumInterval: 1_000 };

test(`${EMAILS} cancels against a due timer: canceled and never sent, or refused and sent once`, async (t) => {
  silenceTemporal();
  const log = pino({ level: 'silent' });
  const database = await testDatabase(20);
  const temporal = await testNamespace();
  const { pool } = database;

  const sentById = new Map<string, number>();
  const provider: EmailProvider = {
    name: 'postmark',
    callSize: 500,
    overlap: 0,
    hasTracking: true,
    refusal: () => undefined,
    async send(emails) {
      await sleep(Math.random() * 10);
      for (const { id } of emails) sentById.set(id, (sentById.get(id) ?? 0) + 1);
      return emails.map(({ id }) => ({ kind: 'sent', messageId: `provider-${id}` }));
    },
  };
  const activities = makeEmailActivities({
    pool,
    contents,
    accountLinks: accountLinkSeal(SECRET_KEY),
    providers: [provider],
    initialIntervalMs: RETRY.initialInterval,
    maxIntervalMs: RETRY.maximumInterval,
    ambiguousSend: 'retry',
    ambiguousSendMaxRepeats: 1,
    confirmNotFoundAfterMs: 1_000,
    goneWorkerWaitMs: 20_000,
    largeEmails: { use: async () => 'unreadable' },
    line: makeProviderLine(),
    pauses: makeProviderPauses(pool, log),
    accountRetryForMs: 72 * 3_600_000,
    recorder: makeAttemptRecorder(pool, log),
    stopping: new AbortController().signal,
    sendingDomains: async () => () => ({ signer: null, tracking: UNTRACKED }),
    track: (email) => email,
    unsubscribeUrl: () => 'https://mail.example/unsubscribe',
    log,
  });
  const { connection, namespace, client } = temporal;
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue: 'email',
    workflowBundle: await workflowBundle(),
    activities,
  });
  const relay = startRelay({ pool, log, dispatch: makeTemporalDispatcher(client, RETRY), startsPerSecond: 1_000_000 });
  const running = worker.run();
  t.after(async () => {
    await relay.stop();
    worker.shutdown();
    await running;
    await temporal.close();
    await database.drop();
  });

  const organization = await createOrganization(pool, 'Race');
  await registerDomainForOperator(pool, organization.id, 'race.example', true);
  const deps: IntakeDeps = {
    pool,
    wakeRelay: relay.wake,
    withFiles: async (_upload, store) => store([]),
    storeEmail: gatherEmails(pool),
    contents,
    limits: noLimits(),
  };
  const request = {
    ...PLAIN_REQUEST,
    from: 'race@race.example',
    to: ['ada@example.com'],
    subject: 'Race',
    text: 'Now or never.',
  };
  const caller = { orgId: organization.id, domainIds: null };
  const countOf = async (sql: string) => (await pool.query<{ count: number }>(sql)).rows[0]?.count;
  const allEnded = () =>
    eventually(
      'every email is canceled or sent',
      async () => (await countOf(`SELECT count(*)::int FROM emails WHERE status IN ('queued', 'scheduled')`)) === 0,
      120_000,
    );
  const schedule = async (due: number) => {
    const scheduled = { ...request, scheduled_at: new Date(due).toISOString() };
    const accepted = await Promise.all(Array.from({ length: EMAILS }, () => acceptEmail(deps, caller, scheduled)));
    while (Date.now() < due - SPREAD_MS) {
      if ((await countOf('SELECT count(*)::int FROM outbox')) === 0) return { due, accepted };
      await sleep(50);
    }
    await allEnded();
    sentById.clear();
    return undefined;
  };
  let waiting: Awaited<ReturnType<typeof schedule>>;
  for (const dueIn of DUE_IN) waiting ??= await schedule(Date.now() + dueIn);
  assert.ok(waiting, 'the workflows were started in time');
  const { due, accepted } = waiting;

  const answers: { id: string; status: string }[] = [];
  const cancel = ({ id }: { id: string }): Promise<unknown> =>
    cancelEmail(deps, organization.id, id)
      .then(
        (answer) => answer.status,
        (error: unknown) => (error instanceof ServiceError ? error.code : String(error)),
      )
      .then((status) => answers.push({ id, status }));
  const canceled = () => answers.filter(({ status }) => status === 'canceled').length;
  const asking: Promise<unknown>[] = [];
  const pending = accepted.map((email) => ({ email, turn: Math.random() })).sort((a, b) => a.turn - b.turn);
  while (pending.length > 0) {
    const first = FIRST * Math.min((Date.now() - due + SPREAD_MS) / (2 * SPREAD_MS), 1);
    const isOver = sentById.size + canceled() >= EMAILS;
    const asked = isOver ? EMAILS : first + 2 * sentById.size;
    for (const { email } of pending.splice(0, Math.max(0, asked - asking.length))) asking.push(cancel(email));
    await sleep(5);
  }
  await Promise.all(asking);
  await allEnded();
  // Until calls in flight have ended.
  await sleep(1_000);

  const wrong: unknown[] = [];
  for (const { id, status: answer } of answers) {
    const email = await findEmail(pool, contents, organization.id, id);
    const sent = sentById.get(id) ?? 0;
    const events = email?.events.map(({ type }) => type).join(' ');
    const right =
      answer === 'canceled'
        ? sent === 0 && email?.status === 'canceled' && events === 'email.scheduled email.canceled'
        : answer === 'not_scheduled' &&
          sent === 1 &&
          email?.status === 'sent' &&
          events === 'email.scheduled email.sent';
    if (!right) wrong.push({ id, answer, sent, status: email?.status, events });
  }
  assert.deepEqual(wrong, []);
  t.diagnostic(`${canceled()} canceled, ${EMAILS - canceled()} sent`);
  assert.ok(
    canceled() > EMAILS / 20 && canceled() < EMAILS - EMAILS / 20,
    `both outcomes occurred: ${canceled()} canceled`,
  );
});
