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

/** An empty object for something else. */
export function objectOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** The objects of a list. */
export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** A text that can be stored and is not empty. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && bodyProblem(value) === undefined;
}
