/**
 * The state of a workflow in Temporal:
 * running   it waits for an activity or a workflow task, or was paused by an operator
 * idle      it waits for a timer or a signal, which is an error if its message is overdue
 * failing   its workflow task fails repeatedly, and no activity of it is running
 * closed    it has ended with any status
 * missing   it has no history
 */
export type WorkflowState = 'running' | 'idle' | 'failing' | 'closed' | 'missing';

/** The maximum number of concurrent requests to Temporal in one step. */
export const MAX_CONCURRENT_REQUESTS = 10;

export interface FailingWorkflow {
  readonly id: string;
  readonly type: string;
}

export interface Workflows {
  readonly describe: (id: string) => Promise<WorkflowState>;
  /** Terminates a workflow that a new one replaces. Does nothing if it is closed. */
  readonly terminate: (id: string) => Promise<void>;
  /** Returns the workflows that are running; may lag by a few seconds. */
  readonly findRunning: (ids: readonly string[]) => Promise<Set<string>>;
  readonly findFailing: (limit: number) => Promise<FailingWorkflow[]>;
  /** Signals open workflows that only earlier versions start, so that they end. @returns their number, at most `limit` */
  readonly endEarlier: (limit: number) => Promise<number>;
}
