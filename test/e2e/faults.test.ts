import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAULTS } from '../faults/faults.ts';
import { openStage } from '../faults/stage.ts';

/** Some of those that take seconds, one of each kind: a process, a connection, a moment, a provider, and the end in good order. */
const SELECTION = ['api-kill-after-commit', 'postgres-kill', 'shutdown'];
const SEED = 20_261;

test('nothing is lost, and nothing sent twice', async (t) => {
  const options = { seconds: 3, minutes: 0, production: false, say: (line: string) => t.diagnostic(line) };
  const stage = await openStage(options, { ways: ['api-postgres'] });
  t.after(() => stage.close());
  for (const [index, name] of SELECTION.entries()) {
    await t.test(name, async () => {
      const fault = FAULTS[name];
      if (!fault) throw new Error(`there is no fault ${name}`);
      const { accepted, wrong } = await (await stage.run(name, fault, SEED + index)).result;
      assert.deepEqual(wrong, []);
      assert.ok(accepted > 50, `enough was sent: ${accepted}`);
    });
  }
});
