import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeWorkflow } from '../../src/main/describe-workflow.ts';
import { testNamespace } from '../support/temporal.ts';
import { silenceTemporal } from '../support/workflows.ts';

test('a workflow runs, has closed, or is not known', { timeout: 60_000 }, async (t) => {
  silenceTemporal();
  const { client, close } = await testNamespace();
  t.after(close);
  assert.equal(await describeWorkflow(client, 'em_1'), 'missing');
  const start = () =>
    client.workflow.start('deliverEmail', {
      workflowId: 'em_1',
      taskQueue: 'nobody',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    });
  const handle = await start();
  assert.equal(await describeWorkflow(client, 'em_1'), 'running');
  await handle.terminate();
  assert.equal(await describeWorkflow(client, 'em_1'), 'closed');
  await start();
  assert.equal(await describeWorkflow(client, 'em_1'), 'running');
});
