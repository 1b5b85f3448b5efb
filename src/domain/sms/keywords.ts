/** The effect of a keyword on the pair of sender and recipient. The provider answers HELP. */
export type Keyword = 'stop' | 'start' | 'help';

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map([
  ...['stop', 'stopall', 'unsubscribe', 'cancel', 'end', 'quit'].map((word): [string, Keyword] => [word, 'stop']),
  ...['start', 'yes', 'unstop'].map((word): [string, Keyword] => [word, 'start']),
  ['help', 'help'],
]);

/** Returns the keyword that is the whole text of an inbound message; undefined for any other text. */
export function keywordOf(text: string): Keyword | undefined {
  // Not toUpperCase: it maps the dotless i and the long s to ASCII letters.
  return KEYWORDS.get(text.trim().toLowerCase());
}
