/** Formats a time as Postmark does: ISO 8601 in UTC with seven fraction digits. */
export function postmarkTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace('Z', '0000Z');
}
