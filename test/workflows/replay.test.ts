import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { bundleWorkflowCode, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { quiet, silenceTemporal, workflowCode } from '../support/workflows.ts';
import { keptHistories } from './histories.ts';

describe('workflow code of today replays every history that was kept', async () => {
  const histories = await keptHistories();
  let workflowBundle: WorkflowBundleWithSourceMap;
  before(async () => {
    silenceTemporal();
    workflowBundle = await bundleWorkflowCode({ ...workflowCode, logger: quiet });
  });

  for (const [name, history] of histories) {
    test(name, () => Worker.runReplayHistory({ workflowBundle, replayName: name }, history));
  }

  test('histories of every way are kept', () => {
    assert.ok(histories.size >= 12, `${histories.size} histories`);
  });

  test('a history that this code would not have made is found out', async () => {
    const [, history] = [...histories].find(([name]) => name.includes('29-days')) ?? [];
    const text = JSON.stringify(history);
    const other = text.replace(/"activityType":\{"name":"deliverEmail"/, '"activityType":{"name":"deliverLetter"');
    assert.notEqual(other, text);
    await assert.rejects(Worker.runReplayHistory({ workflowBundle }, JSON.parse(other) as unknown), {
      name: 'DeterminismViolationError',
    });
  });
});
