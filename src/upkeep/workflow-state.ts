/**
 * What Temporal knows of a workflow:
 * running   it has an activity or a workflow task to wait for, or was paused by hand
 * idle      it waits for a timer or a signal, which is wrong when its message is overdue
 * failing   its workflow task fails again and again, and no activity of it is under way
 * closed    it has ended, in whatever way
 * missing   there is no history of it
 */
export type WorkflowState = 'running' | 'idle' | 'failing' | 'closed' | 'missing';

/** A workflow whose task fails again and again. */
export interface FailingWorkflow {
  readonly id: string;
  /** The name of its function. */
  readonly type: string;
}

/** What maintenance tasks ask of Temporal. */
export interface Workflows {
  readonly describe: (id: string) => Promise<WorkflowState>;
  /** Does nothing where it has closed already. */
  readonly terminate: (id: string, reason: string) => Promise<void>;
  /** Which of many workflows run, as of a few seconds ago. */
  readonly findRunning: (ids: readonly string[]) => Promise<Set<string>>;
  readonly findFailing: (limit: number) => Promise<FailingWorkflow[]>;
}
