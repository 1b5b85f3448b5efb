import type { Workflows, WorkflowState } from '../../src/upkeep/workflow-state.ts';

/** A fake Temporal whose workflows all have this state. */
export function fakeWorkflows(overrides: Partial<Workflows> = {}, state: WorkflowState = 'missing') {
  const described: string[] = [];
  const terminated: string[] = [];
  const workflows: Workflows = {
    describe: async (id) => {
      described.push(id);
      return state;
    },
    terminate: async (id) => void terminated.push(id),
    findRunning: async () => new Set(),
    findFailing: async () => [],
    endEarlier: async () => 0,
    ...overrides,
  };
  return { workflows, described, terminated };
}
