import { bodyProblem } from '../lib/text.ts';

/** An object of JSON that a provider wrote: nothing is known of its fields until they are looked at. */
export type Fields = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
