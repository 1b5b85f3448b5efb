/** The result of one step of a maintenance task: the items done, and the cursor of the next step; null after the last. */
export interface UpkeepStep {
  readonly done: number;
  readonly next: string | null;
}
