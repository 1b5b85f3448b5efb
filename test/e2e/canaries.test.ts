import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import type { DevFile } from '../../src/main/dev-file.ts';
import { inFuture } from '../http/service.ts';
import { foundIn } from '../security/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { httpServer } from '../providers/servers.ts';
import { call, emptyHome, startSendwright } from '../support/start.ts';
import { setBehaviour } from '../../dev/simulator/set-behaviour.ts';

/**
 * Words for private data, each in its own field, which are sent through every state of a message. None of them may be in
 * our logs or in Temporal.
 */
const WORDS = {
  name: 'canaryname',
  to: 'canaryto@canaryhost.example',
  cc: 'canarycc@canaryhost.example',
  bcc: 'canarybcc@canaryhost.example',
  replyTo: 'canaryreply@canaryhost.example',
  subject: 'canarysubject',
  html: 'canaryhtml',
  text: 'canarytext',
  header: 'canaryheader',
  tag: 'canarytag',
  filename: 'canaryfilename',
  file: 'canaryfile',
  path: 'canarypath',
  member: 'canarymember@canaryhost.example',
  marketed: 'canarymarketed@canaryhost.example',
  late: 'canarylate@canaryhost.example',
  unlucky: 'canaryunlucky@canaryhost.example',
  bounced: 'bounced+mailbox_full@canaryhost.example',
  complained: 'complained@canaryhost.example',
  failedOnce: 'fail-once@canaryhost.example',
  failed: 'fail-always@canaryhost.example',
  chat: 'canarychat',
  number: '+14165550177',
  failedNumber: '+14165550001',
  template: 'canarytemplate',
  link: 'canarylink',
  hook: 'canaryhook',
  hookAnswer: 'canaryanswer',
  numberToken: 'canarynumbertoken',
  suppressed: 'canarysuppressed@canaryhost.example',
};

type Json = Record<string, unknown>;

test('no log and no workflow holds an address, a body, a file or a secret', async (t) => {
  const home = await emptyHome();
  const launched = await startSendwright(t, home, { LOG_LEVEL: 'trace', SEND_MAX_ATTEMPTS: '2' });
  const dev = await launched.dev();
  const secrets: Record<string, string> = { ...WORDS, ...(await send(t, dev, home)) };
  const client = await temporalClient(t, dev);
  await eventually(
    'no message is in flight but one that is due in a day',
    async () => {
      const { count } = await client.workflow.count(
        `ExecutionStatus = 'Running' AND WorkflowType IN ('deliverGroup', 'deliverChat')`,
      );
      const { emails } = await call<{ emails: unknown[] }>(dev, 'GET', '/v1/emails?status=queued');
      return count === 0 && emails.length === 0;
    },
    90_000,
  );

  // All that Temporal stores of every workflow: events, payloads, summaries, memo, attributes, failures.
  const kept: Buffer[] = [];
  const types = new Set<string>();
  for await (const { workflowId, type } of client.workflow.list()) {
    types.add(type);
    const handle = client.workflow.getHandle(workflowId);
    kept.push(...textsIn(await handle.fetchHistory()), ...textsIn((await handle.describe()).raw));
  }
  const written = Buffer.concat(kept);
  assert.deepEqual(foundIn(written, secrets), []);
  for (const type of ['deliverEmail', 'deliverGroup', 'deliverChat']) {
    assert.ok(types.has(type), `no workflow was a ${type}: ${[...types].join()}`);
  }
  const shown = { masked: 'c***@canaryhost.example', workflow: 'deliverEmail' };
  assert.deepEqual(foundIn(written, shown), Object.keys(shown), 'data that is stored on purpose is found');

  assert.equal(await launched.end(), 0);
  const folder = join(home, 'temporal');
  for (const file of await readdir(folder)) {
    assert.deepEqual(foundIn(await readFile(join(folder, file)), secrets), [], `Temporal's ${file}`);
  }
  for (const part of ['api', 'worker', 'simulator', 'temporal']) {
    const log = await readFile(join(home, 'logs', `${part}.log`), 'utf8');
    assert.deepEqual(linesWith(log, secrets), [], `${part}.log`);
    if (part === 'api') assert.ok(log.split('\n').length > 50, `only this was logged: ${log}`);
  }
  // `npm start` prints the password and key of its user.
  const others = Object.fromEntries(
    Object.entries(secrets).filter(([name]) => !/^(?:dashboardPassword|apiKey)$/.test(name)),
  );
  assert.deepEqual(linesWith(launched.output(), others), [], 'the output of npm start');
});

/** Sends messages of every kind. @returns the created secrets */
async function send(t: TestContext, dev: DevFile, home: string): Promise<Record<string, string>> {
  let requests = 0;
  // Fails once, and answers with a word that must not be logged.
  const hook = await httpServer(t, (_, response) => {
    response.writeHead(++requests === 1 ? 500 : 200).end(WORDS.hookAnswer);
  });
  const { secret } = await call(dev, 'POST', '/v1/webhooks', { url: `${hook}/${WORDS.hook}?key=${WORDS.hook}` });
  const { api_key: other } = await call(dev, 'POST', '/v1/keys', { preset: 'read_only' });
  await call(dev, 'POST', '/v1/suppressions', { email: WORDS.suppressed });
  // Ambiguous answers of the provider.
  for (const behaviour of [{ reset_after_accept: 1 }, { garbage: 1 }, { fail_next: 1 }]) {
    await setBehaviour(dev.inbox_url ?? '', behaviour);
    const id = await email(dev, {});
    await eventually(
      'it is sent',
      async () => (await call(dev, 'GET', `/v1/emails/${id}`))['status'] !== 'queued',
      30_000,
    );
  }
  await setBehaviour(dev.inbox_url ?? '', {});

  await email(dev, {});
  await email(dev, { to: WORDS.suppressed });
  await email(dev, { marketing: true, to: WORDS.marketed, html: `${WORDS.html} {{{unsubscribe_url}}}` });
  for (const to of [WORDS.bounced, WORDS.complained, WORDS.failedOnce, WORDS.failed]) await email(dev, { to });
  const late = await email(dev, { to: WORDS.late, scheduled_at: inFuture({ days: 1 }) });
  await call(dev, 'PATCH', `/v1/emails/${late}`, { scheduled_at: inFuture({ days: 2 }) });
  const canceled = await email(dev, { scheduled_at: inFuture({ days: 1 }) });
  await call(dev, 'POST', `/v1/emails/${canceled}/cancel`, {});
  const attachments = [{ filename: 'a', path: `http://127.0.0.1/${WORDS.path}` }];
  await call(dev, 'POST', '/v1/emails', mail(dev, { attachments }), 422);
  const emails = Array.from({ length: 120 }, () => ({ ...mail(dev, { to: WORDS.member }), attachments: undefined }));
  await call(dev, 'POST', '/v1/emails/batch', { emails });

  const meta = { number: '+12025550199', provider: 'meta', phone_number_id: '12025550199', access_token: 'a-token' };
  await call(dev, 'POST', '/v1/chatapp/numbers', meta);
  const own = {
    number: '+12025550198',
    provider: 'meta',
    phone_number_id: '12025550198',
    access_token: WORDS.numberToken,
  };
  await call(dev, 'POST', '/v1/chatapp/numbers', own);
  await call(dev, 'POST', '/v1/chatapp', { from: own.number, to: WORDS.number, text: WORDS.chat });
  const from = meta.number;
  await call(dev, 'POST', '/v1/chatapp', { from, to: WORDS.number, text: WORDS.chat });
  await call(dev, 'POST', '/v1/chatapp', { from, to: WORDS.failedNumber, text: WORDS.chat });
  const link = `https://example.com/${WORDS.link}`;
  await call(dev, 'POST', '/v1/chatapp', {
    from,
    to: WORDS.number,
    type: 'document',
    document: { link, filename: WORDS.filename },
  });
  const components = [{ type: 'body', parameters: [{ type: 'text', text: WORDS.template }] }];
  const template = { name: 'hello_world', language: 'en_US', components };
  await call(dev, 'POST', '/v1/chatapp', { from, to: WORDS.number, type: 'template', template });

  await sendUnrecordable(dev, join(home, 'logs', 'worker.log'));
  return {
    apiKey: dev.api_key.split('_').at(-1) ?? '',
    otherKey: String(other).split('_').at(-1) ?? '',
    webhookSecret: String(secret).replace(/^whsec_/, ''),
    dashboardPassword: dev.dashboard_password,
  };
}

function mail(dev: DevFile, fields: Json): Json {
  return {
    from: `${WORDS.name} <${dev.from.replace(/^.*<|>$/g, '')}>`,
    to: `${WORDS.name} <${WORDS.to}>`,
    cc: WORDS.cc,
    bcc: WORDS.bcc,
    reply_to: WORDS.replyTo,
    subject: WORDS.subject,
    html: WORDS.html,
    text: WORDS.text,
    headers: { 'X-A': WORDS.header },
    tags: [{ name: 'a', value: WORDS.tag }],
    attachments: [{ filename: `${WORDS.filename}.txt`, content: Buffer.from(WORDS.file).toString('base64') }],
    ...fields,
  };
}

async function email(dev: DevFile, fields: Json): Promise<string> {
  return String((await call(dev, 'POST', '/v1/emails', mail(dev, fields)))['id']);
}

/** Sends an email whose status "sent" the database refuses, with an error that quotes the whole row. */
async function sendUnrecordable(dev: DevFile, log: string): Promise<void> {
  const client = new pg.Client(dev.database_url);
  await client.connect();
  await client.query(
    `ALTER TABLE emails ADD CONSTRAINT unlucky CHECK (status = 'queued' OR "to" ->> 0 <> '${WORDS.unlucky}')`,
  );
  await email(dev, { to: WORDS.unlucky });
  await eventually('the worker has logged it', async () => (await readFile(log, 'utf8')).includes('"unlucky"'), 30_000);
  await client.query('ALTER TABLE emails DROP CONSTRAINT unlucky');
  await client.end();
}

async function temporalClient(t: TestContext, dev: DevFile): Promise<Client> {
  const connection = await Connection.connect({ address: dev.temporal_address });
  t.after(() => connection.close());
  return new Client({ connection, namespace: dev.temporal_namespace });
}

/** Every text and every payload within an answer of Temporal. */
function textsIn(value: unknown): Buffer[] {
  if (typeof value === 'string') return [Buffer.from(`${value}\n`)];
  if (value instanceof Uint8Array) return [Buffer.from(value), Buffer.from('\n')];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => [Buffer.from(`${key}\n`), ...textsIn(part)]);
}

/** The lines that contain a secret, with its name. */
function linesWith(log: string, secrets: Readonly<Record<string, string>>): string[] {
  return foundIn(log, secrets).map((name) => {
    const line = log.split('\n').find((each) => foundIn(each, { [name]: secrets[name] ?? '' }).length > 0);
    return `${name}: ${line ?? ''}`;
  });
}
