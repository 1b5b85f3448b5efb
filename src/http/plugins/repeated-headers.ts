const HEADERS = /"headers"\s*:\s*\{/g;
/** A letter of `headers` that is written as an escape. */
const ESCAPED_LETTER = /\\u00(?:6[1458]|7[23])/;
const MEMBER = /\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*,?/y;

/**
 * Returns true if an object named `headers` in valid JSON contains the same key twice. The parsed body does not show that,
 * because JSON.parse keeps only the last value. Searches the text for such objects and tokenizes only these. Returns true
 * also for a text in which letters of the key are escaped; the caller parses it again, exactly.
 */
export function repeatsHeader(text: string): boolean {
  if (ESCAPED_LETTER.test(text)) return true;
  for (const { index, 0: start } of text.matchAll(HEADERS)) {
    const names = new Set<string>();
    MEMBER.lastIndex = index + start.length;
    for (let member = MEMBER.exec(text); member; member = MEMBER.exec(text)) {
      const name = JSON.parse(member[1] as string) as string;
      if (names.has(name)) return true;
      names.add(name);
    }
  }
  return false;
}
