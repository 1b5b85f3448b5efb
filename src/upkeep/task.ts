/** The result of one step of a maintenance task: the items done, and the cursor of the next step; null after the last. */
export interface UpkeepStep {
  readonly done: number;
  readonly next: string | null;
}

/** After this time a step makes no more requests to a provider. Its activity may take five minutes. */
export const STEP_DEADLINE_MS = 120_000;

/** The result of a step that reads at most `limit` items from the start: another one follows if it found as many. */
export function toStep(done: number, limit: number, found = done): UpkeepStep {
  return { done, next: found === limit ? '' : null };
}
