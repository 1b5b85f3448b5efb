import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS } from '../faults/faults.ts';
import { startHarness } from '../faults/harness.ts';

/** Some of those that take seconds, one of each kind: a process, a connection, a moment, a provider, and the end in good order. */
const SELECTION = ['api-kill-after-commit', 'postgres-kill', 'shutdown'];
const SEED = 20_261;

test('nothing is lost, and nothing sent twice', async (t) => {
  const options = { seconds: 3, minutes: 0, production: false, say: (line: string) => t.diagnostic(line) };
  const harness = await startHarness(options, { proxies: ['api-postgres'] });
  t.after(() => harness.close());
  for (const [index, name] of SELECTION.entries()) {
    await t.test(name, async () => {
      const fault = FAULTS[name];
      if (!fault) throw new Error(`there is no fault ${name}`);
      const { accepted, wrong } = await (await harness.run(name, fault, SEED + index)).result;
      assert.deepEqual(wrong, []);
      assert.ok(accepted > 50, `enough was sent: ${accepted}`);
    });
  }
});
