const HEADERS = /"headers"\s*:\s*\{/g;
const MEMBER = /\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*,?/y;

/**
 * Whether an object named `headers` in a valid JSON text holds a name twice in the same case. JSON.parse keeps only the
 * last of them, so the parsed body does not show it. Reads nothing but these objects, each once.
 */
export function repeatsHeader(text: string): boolean {
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
