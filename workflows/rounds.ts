/**
 * Milliseconds between two rounds of a workflow that Postgres told twice in a row that the work is due now and not for
 * this workflow. Without a pause the two would ask each other several times a second.
 */
export const ROUND_PAUSE_MS = 5_000;

/** Patch id of that pause. */
export const PAUSE_BETWEEN_ROUNDS = 'pause-between-rounds';
