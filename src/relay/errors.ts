/** Temporal cannot be reached, is overloaded, or refuses every request; the rows are valid. */
export class TemporalUnreachable extends Error {}

/** The workflow that a row restarts has a run that may be about to end; the row is dispatched again later. */
export class WorkflowStillOpen extends Error {}
