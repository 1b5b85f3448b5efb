import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { buffer } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { type EventType, verifyWebhook, type WebhookEvent } from '../../client/index.ts';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import type { DevFile } from '../../src/main/dev-file.ts';
import { SETTINGS } from '../../src/settings.ts';
import { assertPresent } from '../client/always-present.ts';
import { assertEvent, type Described } from '../http/described.ts';
import { inFuture } from '../http/service.ts';
import { httpServer } from '../providers/servers.ts';
import { blocks, commands, type Document, documents } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { ROOT } from '../support/root.ts';
import { clientOf, emptyHome, startSendwright } from '../support/start.ts';

/** Beginnings of the commands that are not run, with the reason. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'npm start': 'test/e2e/start.test.ts does',
  'npm test': 'this is part of it',
  'sendwright webhooks listen': 'does not end by itself; test/main/admin-listen.test.ts runs it',
};
/** Blocks that are not run, by the word behind `sh`, with the reason. */
const KINDS: Readonly<Record<string, string>> = {
  docker: 'there is no Docker where tests run',
  verify: 'test/site/languages.test.ts runs it with a signed event',
  'by-hand': 'builds, installs, or starts what does not end by itself',
};

/** Shell functions of a reader: `curl` that fails on an error status, the id of the last answer, and `sendwright`. */
const READER = `
set -eu
ID= ORG=
note() {
  echo "$1"
  NEXT=$(echo "$1" | sed -n 's/^\\({\\|  \\)"id": *"\\([^"]*\\)".*/\\2/p' | head -n 1)
  ID=\${NEXT:-$ID}
  case $ID in org_*) ORG=$ID ;; esac
}
curl() { ANSWER=$(command curl --silent --show-error --fail-with-body "$@") || { echo "$ANSWER"; exit 22; }; note "$ANSWER"; }
sendwright() { ANSWER=$(node --import tsx src/main/admin.ts "$@"); note "$ANSWER"; }
npm() { ANSWER=$(command npm "$@"); note "$ANSWER"; }
`;
/** An empty setting counts as unset, but takes precedence over the developer's own in `.env` of the project's folder. */
const NO_SETTINGS = Object.fromEntries(
  Object.keys(SETTINGS).flatMap((name) => [
    [name, ''],
    [`${name}_FILE`, ''],
  ]),
);

/** The commands of a document to run, in their order and in one shell. */
function script(document: Document): string {
  const scripts = blocks(document, 'sh').map((block) => {
    const [, kind] = block.info;
    assert.ok(kind === undefined || kind in KINDS, `${document.path}:${block.line}: there is no kind ${String(kind)}`);
    const wanted = kind === undefined ? commands(block).filter(isRun) : [];
    return [`echo '# ${document.path}:${block.line}'`, ...wanted].join('\n');
  });
  return scripts.join('\n');
}

function isRun(command: string): boolean {
  return !Object.keys(NOT_RUN).some((start) => command.startsWith(start));
}

/** @returns what was printed, if it failed */
async function run(text: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { cwd: ROOT, env: { ...process.env, ...NO_SETTINGS, ...env }, timeout: 900_000 };
    const shell = execFile('sh', ['-c', READER + text], options, (error, out, err) => {
      resolve(error ? `${out}${err}` : undefined);
    });
    // Without input, no password is typed.
    shell.stdin?.end();
  });
}

/** An endpoint that verifies and keeps events. */
async function listen(t: TestContext, dev: DevFile): Promise<Map<EventType, WebhookEvent>> {
  const events = new Map<EventType, WebhookEvent>();
  let secret = '';
  const url = await httpServer(t, (request, response) => {
    buffer(request)
      .then((body) => verifyWebhook(body, request.headers, secret))
      .then((event) => events.set(event.type, event))
      .then(() => response.writeHead(204).end())
      .catch(() => response.writeHead(400).end());
  });
  ({ secret } = await clientOf(dev).webhooks.create({ url }));
  return events;
}

/** Events that neither the documents' commands nor `sendVariety` cause. */
const UNSEEN =
  /^(?:email\.(?:unsubscribed|rejected)|chatapp\.received|sms\.(?!queued|sent|delivered).+|domain\.(?:verified|failed)|webhook\.disabled)$/;
const EXPECTED = EVENT_TYPES.filter((type) => !UNSEEN.test(type));

/** Follows every message that the documents' commands sent to its end: a 202 alone shows no failure. */
async function assertDelivered(dev: DevFile): Promise<void> {
  const { emails, chatapp, sms } = clientOf(dev);
  const counts = { delivered: 0, canceled: 0, chats: 0, sms: 0 };
  let others: string[] = [];
  const areDelivered = async (): Promise<boolean> => {
    others = [];
    Object.assign(counts, { delivered: 0, canceled: 0, chats: 0, sms: 0 });
    for await (const { id, subject, status, error } of emails.list()) {
      if (status === 'delivered' || status === 'canceled') counts[status]++;
      else others.push(`${id} "${subject}" is ${status}: ${error}`);
    }
    for await (const { id, type, status, error } of chatapp.list()) {
      if (status === 'delivered') counts.chats++;
      else others.push(`${id} (${type}) is ${status}: ${error}`);
    }
    for await (const { id, status, error } of sms.list()) {
      if (status === 'delivered') counts.sms++;
      else others.push(`${id} is ${status}: ${error}`);
    }
    return others.length === 0;
  };
  await eventually('every example ends as delivered or canceled', areDelivered, 120_000).catch((error: unknown) =>
    assert.fail([String(error), ...others].join('\n')),
  );
  // Fewer examples would mean that some were removed or not run.
  const { delivered, canceled, chats } = counts;
  assert.ok(delivered >= 8 && canceled >= 2 && chats >= 4 && counts.sms >= 1, JSON.stringify(counts));
}

async function sendVariety(dev: DevFile): Promise<void> {
  const { emails, chatapp, domains, suppressions, webhooks } = clientOf(dev);
  await suppressions.create('nobody@example.net');
  const names = ['bounced+mailbox_full', 'complained', 'opened', 'clicked', 'delayed', 'fail-always', 'nobody'];
  await Promise.all(
    names.map((name) => emails.send({ from: dev.from, to: `${name}@example.net`, subject: 'Stir', text: 'Hi.' })),
  );
  for (const to of ['+4915123450001', '+4915123450002']) await chatapp.send({ to, text: 'Hi.' });
  const scheduled_at = inFuture({ hours: 1 });
  const { id: later } = await chatapp.send({ to: '+4915123450003', text: 'Hi.', scheduled_at });
  await chatapp.reschedule(later, inFuture({ hours: 2 }));
  await chatapp.cancel(later);
  await domains.delete((await domains.create('variety.example.com')).id);
  for await (const { id, status } of webhooks.list()) if (status === 'enabled') await webhooks.test(id);
}

test(
  'the commands of the documents work, and every event matches the API description',
  { timeout: 1_200_000 },
  async (t) => {
    const home = await emptyHome();
    const dev = await (await startSendwright(t, home)).dev();
    const events = await listen(t, dev);
    const env = { SENDWRIGHT_HOME: home };
    for (const document of await documents()) {
      const text = script(document)
        .replaceAll('http://127.0.0.1:3000', dev.base_url)
        .replaceAll('./.sendwright/', `${home}/`);
      const problem = await run(text, env);
      if (problem !== undefined) assert.fail(`after the last of these: ${problem}`);
    }

    await assertDelivered(dev);
    await sendVariety(dev);
    let missing: readonly EventType[] = [];
    await eventually(
      'every event arrives',
      () => {
        missing = EXPECTED.filter((type) => !events.has(type));
        return missing.length === 0;
      },
      60_000,
    ).catch((error: unknown) => assert.fail(`${String(error)}: ${missing.join(', ')}`));
    const api = (await (await fetch(`${dev.base_url}/openapi.json`)).json()) as Described;
    for (const event of events.values()) {
      assertEvent(api, event);
      assertPresent(event);
    }
  },
);

test('a failing command is detected, and exceptions exist in the documents', async () => {
  for (const wrong of ['curl http://127.0.0.1:1/', 'false', 'sendwright emails shew', 'note "$NOTHING"']) {
    assert.notEqual(await run(wrong, {}), undefined, wrong);
  }
  const shell = (await documents()).flatMap((document) => blocks(document, 'sh'));
  const isUnused = (start: string) => !shell.flatMap(commands).some((command) => command.startsWith(start));
  assert.deepEqual(Object.keys(NOT_RUN).filter(isUnused), [], 'no document has these commands');
  assert.deepEqual(
    Object.keys(KINDS).filter((kind) => !shell.some(({ info }) => info[1] === kind)),
    [],
    'no block is of these kinds',
  );
});
