import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Worker } from '@temporalio/worker';
import { silenceTemporal, workflowBundle } from '../support/workflows.ts';
import { keptHistories } from './histories.ts';

describe('current workflow code replays every recorded history', async () => {
  const histories = await keptHistories();
  let bundle: { readonly codePath: string };
  before(async () => {
    silenceTemporal();
    bundle = await workflowBundle();
  });

  for (const [name, history] of histories) {
    test(name, () => Worker.runReplayHistory({ workflowBundle: bundle, replayName: name }, history));
  }

  test('the recorded histories are found', () => {
    assert.ok(histories.size >= 12, `${histories.size} histories`);
  });

  test('a history that this code could not have produced is rejected', async () => {
    const [, history] = [...histories].find(([name]) => name.includes('29-days')) ?? [];
    const text = JSON.stringify(history);
    const other = text.replace(/"activityType":\{"name":"deliverEmail"/, '"activityType":{"name":"deliverLetter"');
    assert.notEqual(other, text);
    await assert.rejects(Worker.runReplayHistory({ workflowBundle: bundle }, JSON.parse(other) as unknown), {
      name: 'DeterminismViolationError',
    });
  });
});
