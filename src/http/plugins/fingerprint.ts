import { createHash } from 'node:crypto';
import { ServiceError } from '../../domain/errors.ts';
import { startTimeSlices } from '../../intake/time-slices.ts';

/** The maximum nesting of a body. No valid request is nested half as deep. */
const MAX_DEPTH = 64;

/**
 * Returns the SHA-256 of method, path and body. It does not depend on the order of keys or the spelling of numbers and strings.
 * A long calculation yields to other requests between fields, and between the items of their arrays.
 * @throws ServiceError validation_error for a body that is nested too deeply
 */
export async function fingerprint(method: string, path: string, body: unknown): Promise<Buffer> {
  const hash = createHash('sha256').update(`${method} ${path}\n`);
  const yieldIfDue = startTimeSlices();
  for (const part of parts(body)) {
    hash.update(part);
    await yieldIfDue();
  }
  return hash.digest();
}

function* parts(body: unknown): Generator<string> {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    yield serialize(body, MAX_DEPTH);
    return;
  }
  for (const [key, value] of sortedEntries(body)) {
    yield serialize(key, MAX_DEPTH);
    if (Array.isArray(value)) {
      yield `[${value.length}:`;
      for (const item of value) yield serialize(item, MAX_DEPTH);
    } else {
      yield serialize(value, MAX_DEPTH);
    }
  }
}

/** Serializes a value unambiguously: strings, arrays and objects start with their size. */
function serialize(value: unknown, depth: number): string {
  if (depth === 0) throw new ServiceError('validation_error', 'the request body is nested too deeply');
  if (typeof value === 'string') return `"${value.length}:${value}`;
  if (typeof value !== 'object' || value === null) return `${String(value)};`;
  let text: string;
  if (Array.isArray(value)) {
    text = `[${value.length}:`;
    for (const item of value) text += serialize(item, depth - 1);
  } else {
    const entries = sortedEntries(value);
    text = `{${entries.length}:`;
    for (const [key, item] of entries) text += serialize(key, depth) + serialize(item, depth - 1);
  }
  return text;
}

function sortedEntries(value: object): [string, unknown][] {
  return Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
}
