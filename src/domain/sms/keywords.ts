/** The effect of a keyword on a sender and recipient. The provider responds to HELP. */
export type Keyword = 'stop' | 'start' | 'help';

/**
 * Twilio's keywords, which contain those of the FCC (47 CFR 64.1200(a)(10)): with `opt out` in the spellings of people.
 * https://www.twilio.com/docs/messaging/tutorials/advanced-opt-out
 */
const KEYWORDS: ReadonlyMap<string, Keyword> = new Map([
  ...[
    ...['stop', 'stopall', 'unsubscribe', 'cancel', 'end', 'quit', 'revoke'],
    ...['optout', 'opt out', 'opt-out'],
  ].map((word): [string, Keyword] => [word, 'stop']),
  ...['start', 'yes', 'unstop'].map((word): [string, Keyword] => [word, 'start']),
  ['help', 'help'],
]);

/** Full stops, exclamation and quotation marks around a keyword, as in an instruction that was copied. */
const MARKS = /[.!。"'“”‘’]/g;

/** Returns the keyword if it is the whole text of an inbound message; otherwise undefined. */
export function keywordOf(text: string): Keyword | undefined {
  // toUpperCase would map the dotless i and the long s to ASCII letters.
  return KEYWORDS.get(text.replace(MARKS, ' ').replace(/\s+/g, ' ').trim().toLowerCase());
}
