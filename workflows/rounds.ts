/**
 * Pause between two rounds of a workflow if Postgres reported twice in a row that the work is due but not for this workflow.
 * Without it, the workflow would query Postgres several times a second.
 */
export const ROUND_PAUSE_MS = 5_000;

/** Patch id of that pause. */
export const PAUSE_BETWEEN_ROUNDS = 'pause-between-rounds';
