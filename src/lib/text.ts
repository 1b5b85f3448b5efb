/** C0 controls, DEL and the line separators of Unicode: not allowed in text that may become a header. */
// eslint-disable-next-line no-control-regex -- control characters are what this expression is about
const CONTROL = /[\u0000-\u001F\u007F\u2028\u2029]/;

/** Counts Unicode code points. */
export function characters(text: string): number {
  let surrogatePairs = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit <= 0xdbff && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      surrogatePairs++;
      i++;
    }
  }
  return text.length - surrogatePairs;
}

/** UTF-16 units of a server's text that are stored. */
const MAX_STORED = 2_000;

/**
 * Bounds a server's text, and removes what Postgres rejects: NUL, and half of a surrogate pair in JSON. An answer with one could
 * never be recorded.
 */
export function storableText(text: string, maxLength = MAX_STORED): string {
  return text.replaceAll('\0', '').slice(0, maxLength).toWellFormed();
}

/** Formats a number with separators of thousands: 1,000. */
export function formatNumber(number: number): string {
  return number.toLocaleString('en');
}

/** Formats a time to wait, rounded up: `a minute`, `15 minutes`, `24 hours`. */
export function formatWait(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  if (minutes >= 120) return `${Math.ceil(minutes / 60)} hours`;
  return minutes === 1 ? 'a minute' : `${minutes} minutes`;
}

/** Returns why text does not fit in one header line, or undefined. */
export function controlProblem(text: string): string | undefined {
  if (CONTROL.test(text)) return 'must not contain control characters or line breaks';
  return text.isWellFormed() ? undefined : 'must be well-formed Unicode';
}

/** Returns why multi-line text is not valid, or undefined. */
export function bodyProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain NUL characters';
  return text.isWellFormed() ? undefined : 'must be well-formed Unicode';
}
