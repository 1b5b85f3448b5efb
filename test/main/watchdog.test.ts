import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test, type TestContext } from 'node:test';
import { provided } from '../support/provided.ts';

/** Milliseconds of the watchdog that is tried. */
const [LIMIT_MS, TICK_MS] = [3_000, 100];

describe('the watchdog', { concurrency: true }, () => {
  /** A process with a watchdog that prints `ready` and then runs `code`. */
  async function start(t: TestContext, code: string): Promise<{ child: ChildProcess; output: () => string }> {
    const watchdog = JSON.stringify(join(provided('TEST_COMPILED'), 'src/main/watchdog.mjs'));
    const script = `import { startWatchdog } from ${watchdog};
      startWatchdog('test', ${LIMIT_MS}, ${TICK_MS});
      console.log('ready');
      ${code}`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const { stdout } = child;
    t.after(() => child.kill('SIGKILL'));
    let printed = '';
    stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    await once(stdout, 'data');
    return { child, output: () => printed };
  }

  test('ends a process whose event loop hangs', async (t) => {
    const { child, output } = await start(t, 'setTimeout(() => { for (;;); }, 500);');
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
    assert.deepEqual([code, signal], [null, 'SIGKILL']);
    assert.match(output(), /"name":"sendwright test".*"msg":"event loop hangs, ending the process"/);
  });

  test('leaves a process alone whose event loop turns, and does not keep it alive', async (t) => {
    const { child } = await start(t, `setTimeout(() => undefined, ${2 * LIMIT_MS});`);
    assert.deepEqual(await once(child, 'close'), [0, null]);
  });

  test('does not end a process that was stopped for longer than the limit when it resumes', async (t) => {
    const { child } = await start(t, `setTimeout(() => undefined, ${6 * LIMIT_MS});`);
    child.kill('SIGSTOP');
    await sleep(2 * LIMIT_MS);
    child.kill('SIGCONT');
    assert.deepEqual(await once(child, 'close'), [0, null]);
  });
});
