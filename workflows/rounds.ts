/**
 * Pause of a workflow between two rounds if Postgres reports that the work is due, but not for this workflow: it may have another
 * version of the schedule. A single message pauses only from the second such report in a row. Without the pause, the workflow
 * would query Postgres several times a second.
 */
export const ROUND_PAUSE_MS = 5_000;

/** Patch id of that pause. */
export const PAUSE_BETWEEN_ROUNDS = 'pause-between-rounds';
