/** One step of a chore: how much it did, and where the next one goes on; null when nothing is left to do. */
export interface UpkeepStep {
  readonly done: number;
  readonly next: string | null;
}
