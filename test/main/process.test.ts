import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { endChild } from '../support/end-child.ts';
import { provided } from '../support/provided.ts';

/** How long the work lasts that a process finishes after SIGTERM. */
const WORK_MS = 500;

describe('a process that gets SIGTERM', { concurrency: true }, () => {
  /** @returns the exit code of a process with this `SHUTDOWN_TIMEOUT` */
  async function stop(t: TestContext, timeoutMs: number): Promise<unknown> {
    const script = `import { stopOnSignals } from ${JSON.stringify(join(provided('TEST_COMPILED'), 'src/main/process.mjs'))};
      stopOnSignals(console, ${timeoutMs}, () => new Promise((resolve) => setTimeout(resolve, ${WORK_MS})));
      setInterval(() => undefined, 1_000);
      console.log('ready');`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => endChild(child));
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    return (await once(child, 'exit'))[0];
  }

  test('ends with 1 when its time is over', async (t) => {
    assert.equal(await stop(t, WORK_MS / 10), 1);
  });

  test('finishes its work within the longest time that the setting allows', async (t) => {
    const thirtyDaysMs = 720 * 3_600_000;
    assert.equal(await stop(t, thirtyDaysMs), 0);
  });
});
