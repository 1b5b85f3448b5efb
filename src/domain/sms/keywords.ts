/** The effect of a keyword on a sender and recipient. The provider responds to HELP. */
export type Keyword = 'stop' | 'start' | 'help';

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map([
  ...['stop', 'stopall', 'unsubscribe', 'cancel', 'end', 'quit'].map((word): [string, Keyword] => [word, 'stop']),
  ...['start', 'yes', 'unstop'].map((word): [string, Keyword] => [word, 'start']),
  ['help', 'help'],
]);

/** Returns the keyword if it is the whole text of an inbound message; otherwise undefined. */
export function keywordOf(text: string): Keyword | undefined {
  // toUpperCase would map the dotless i and the long s to ASCII letters.
  return KEYWORDS.get(text.trim().toLowerCase());
}
