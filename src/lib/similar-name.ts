/** A longer name is not compared: callers choose the names, and the distance takes time in proportion to both lengths. */
const MAX_NAME_LENGTH = 64;

/** Words that other services use for ours in the names of fields, and names of several words without their separators. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  attachments: ['attachment', 'file', 'files'],
  content: ['data', 'base64'],
  cursor: ['page', 'offset', 'token', 'next', 'starting'],
  email: ['address', 'recipient'],
  emails: ['addresses', 'messages', 'recipients'],
  filename: ['name'],
  from: ['sender', 'source', 'originator'],
  limit: ['perpage', 'pagesize', 'size', 'count', 'max', 'maxresults'],
  path: ['url', 'href', 'link'],
  scheduled: ['send', 'deliver', 'delivery', 'schedule', 'time', 'date', 'later'],
  status: ['state'],
  subject: ['title'],
  tag: ['category', 'label'],
  tags: ['categories', 'labels', 'metadata', 'tag'],
  text: ['body', 'content', 'message', 'plain'],
  to: ['recipient', 'recipients', 'destination', 'phone', 'number'],
  url: ['endpoint', 'callback', 'link'],
};

/** Words that do not identify a field by themselves. */
const FILLERS: ReadonlySet<string> = new Set(['a', 'after', 'at', 'before', 'by', 'in', 'is', 'list', 'of', 'the']);

/** Returns the candidate that was most likely meant by an unknown name; undefined if none is similar. */
export function findSimilarName(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return undefined;
  const scored = candidates.map((candidate) => ({ candidate, score: similarity(name, candidate) }));
  const best = scored.reduce((max, each) => (each.score > max.score ? each : max), { candidate: '', score: 0 });
  return best.score > 0 ? best.candidate : undefined;
}

/** Another spelling (`replyTo`) counts most, then a slip of the pen (`subjct`), then a common word, then a synonym. */
function similarity(name: string, candidate: string): number {
  const [words, ours] = [wordsOf(name), wordsOf(candidate)];
  const [written, meant] = [words.join(''), ours.join('')];
  const longer = Math.max(written.length, meant.length);
  const edits = editDistance(written, meant);
  if (edits <= Math.max(1, Math.floor(longer / 4)) && edits < Math.min(written.length, meant.length))
    return 100 - edits;
  const telling = words.filter((word) => !FILLERS.has(word));
  const shared = telling.filter((word) => word !== 'id' && ours.includes(word)).length;
  if (shared > 0) return 10 + shared + shared / ours.length;
  const isSynonym = (word: string) => ours.some((our) => SYNONYMS[our]?.includes(word));
  return isSynonym(written) || (telling.length > 0 && telling.every(isSynonym)) ? 1 : 0;
}

/** Splits a name in camel, snake or kebab case into words in lower case. */
function wordsOf(name: string): string[] {
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase();
  return words.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '');
}

/** Returns the number of characters to insert, remove, replace or swap with their neighbor (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let [beforeLast, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const replaced = at(last, j - 1) + (isSame ? 0 : 1);
      const swapped = isSwap ? at(beforeLast, j - 2) + 1 : Infinity;
      row.push(Math.min(at(last, j) + 1, at(row, j - 1) + 1, replaced, swapped));
    }
    [beforeLast, last] = [last, row];
  }
  return at(last, b.length);
}

const at = (row: readonly number[], index: number): number => row[index] ?? Infinity;
