import assert from 'node:assert/strict';
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { provided } from '../../support/provided.ts';
import { mail } from './start.ts';

const program = (): string => join(provided('TEST_COMPILED'), 'dev/simulator/main.mjs');

interface Ready {
  ready: boolean;
  postmarkUrl: string;
  smtpUrl: string;
  inboxUrl: string;
}

async function run(t: TestContext, env: Record<string, string> = {}): Promise<{ child: ChildProcess; ready: Ready }> {
  const options = { execArgv: [], env: { PATH: process.env['PATH'], LOG_LEVEL: 'error', ...env } };
  const child = fork(program(), options);
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
  const folder = mkdtempSync(join(tmpdir(), 'simulator-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const env = { SIMULATOR_FOLDER: folder, POSTMARK_SERVER_TOKEN: 'secret' };
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
      await fetch(`${ready.postmarkUrl}/simulator/behaviour`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ latency_ms: 60_000 }),
      });
      const call = assert.rejects(send(ready.postmarkUrl, 'any'));
      await new Promise((resolve) => setTimeout(resolve, 50));
      const ended = once(child, 'exit');
      end(child);
      assert.deepEqual(await ended, [0, null]);
      await call;
    }),
  );
});

test('exits with 1 and one line about an invalid setting', async () => {
  const cases = [
    [{ SIMULATOR_PORT: 'x' }, /SIMULATOR_PORT is malformed/],
    [{ SIMULATOR_CALLBACK_URL: 'http://127.0.0.1/' }, /needs POSTMARK_WEBHOOK_USER and POSTMARK_WEBHOOK_PASSWORD/],
  ] as const;
  await Promise.all(
    cases.map(async ([env, reason]) => {
      const options = { env: { PATH: process.env['PATH'], ...env } };
      const failure = promisify(execFile)(process.execPath, [program()], options);
      await assert.rejects(failure, ({ code, stderr }: { code: number; stderr: string }) => {
        assert.equal(code, 1);
        assert.match(stderr, reason);
        assert.equal(stderr.trim().split('\n').length, 1);
        return true;
      });
    }),
  );
});
