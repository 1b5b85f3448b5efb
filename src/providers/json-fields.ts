import { bodyProblem } from '../lib/text.ts';

/** An object of JSON that a provider wrote. Its fields are unchecked. */
export type Fields = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns undefined for a text that is not a JSON object */
export function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns an object; an empty one for any other value. */
export function objectOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** Returns the objects of a list; none for any other value. */
export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns true for a text that is not empty and that Postgres can store. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && bodyProblem(value) === undefined;
}
