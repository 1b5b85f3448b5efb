import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS } from '../faults/faults.ts';
import { startHarness } from '../faults/harness.ts';

/** Faults that take only seconds, of several kinds. */
const QUICK_FAULTS = ['api-kill-after-commit', 'postgres-kill', 'shutdown'];
const SEED = 20_261;

test('no message is lost or sent twice after a fault', async (t) => {
  const options = { seconds: 3, minutes: 0, production: false, print: (line: string) => t.diagnostic(line) };
  const harness = await startHarness(options, { proxies: ['api-postgres'] });
  t.after(() => harness.close());
  for (const [index, name] of QUICK_FAULTS.entries()) {
    await t.test(name, async () => {
      const fault = FAULTS[name];
      if (!fault) throw new Error(`there is no fault ${name}`);
      const { accepted, wrong } = await (await harness.run(name, fault, SEED + index)).result;
      assert.deepEqual(wrong, []);
      assert.ok(accepted > 50, `enough was sent: ${accepted}`);
    });
  }
});
