/** The last row of the previous page of a list that is sorted by (created_at, id), latest first. */
export interface Cursor {
  readonly created_at: string;
  readonly id: string;
}

/** Before the first row of a list. */
export const START: Cursor = { created_at: 'infinity', id: '' };

/** Returns the values that (created_at, id) of the next rows are compared with. */
export function cursorValues(after: Cursor | null): [createdAt: string, id: string] {
  const { created_at: createdAt, id } = after ?? START;
  return [createdAt, id];
}
