import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setBehaviour } from '../../../dev/simulator/set-behaviour.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { provided } from '../../support/provided.ts';
import { mail } from './start.ts';

interface Ready {
  ready: boolean;
  postmarkUrl: string;
  smtpUrl: string;
  inboxUrl: string;
}

async function run(t: TestContext, env: Record<string, string> = {}): Promise<{ child: ChildProcess; ready: Ready }> {
  const options = { execArgv: [], env: { PATH: process.env['PATH'], LOG_LEVEL: 'error', ...env } };
  const child = fork(join(provided('TEST_COMPILED'), 'dev/simulator/main.mjs'), options);
  t.after(() => child.kill('SIGKILL'));
  const [ready] = (await once(child, 'message')) as [Ready];
  return { child, ready };
}

function send(url: string, token: string): Promise<Response> {
  return fetch(`${url}/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-postmark-server-token': token },
    body: JSON.stringify(mail()),
  });
}

test('reports its addresses to the parent, and its inbox survives SIGKILL', async (t) => {
  const env = { SIMULATOR_FOLDER: await temporaryFolder(t), POSTMARK_SERVER_TOKEN: 'secret' };
  const first = await run(t, env);
  assert.equal(first.ready.ready, true);
  assert.match(first.ready.smtpUrl, /^smtp:\/\/127\.0\.0\.1:\d+$/);
  assert.equal(first.ready.inboxUrl, `${first.ready.postmarkUrl}/inbox`);
  assert.equal((await send(first.ready.postmarkUrl, 'wrong')).status, 401);
  const answers = await Promise.all(Array.from({ length: 50 }, () => send(first.ready.postmarkUrl, 'secret')));
  assert.ok(answers.every(({ status }) => status === 200));
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');

  const second = await run(t, env);
  const messages = (await (await fetch(`${second.ready.inboxUrl}/messages?limit=1000`)).json()) as unknown[];
  assert.equal(messages.length, 50);
});

test('exits with 0 on SIGTERM, SIGINT and disconnect while calls are pending', async (t) => {
  const ends = [
    (child: ChildProcess) => child.kill('SIGTERM'),
    (child: ChildProcess) => child.kill('SIGINT'),
    (child: ChildProcess) => child.disconnect(),
  ];
  await Promise.all(
    ends.map(async (end) => {
      const { child, ready } = await run(t);
      await setBehaviour(ready.postmarkUrl, { latency_ms: 60_000 });
      const call = assert.rejects(send(ready.postmarkUrl, 'any'));
      await sleep(50);
      const ended = once(child, 'exit');
      end(child);
      assert.deepEqual(await ended, [0, null]);
      await call;
    }),
  );
});
