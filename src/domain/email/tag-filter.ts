import type { Tag } from './email.ts';
import { TAG_LENGTH } from '../limits.ts';

const TAG = new RegExp(`^([A-Za-z0-9_-]{1,${TAG_LENGTH}}):([A-Za-z0-9_-]{1,${TAG_LENGTH}})$`);

/** Parses a tag in the form `name:value`; returns undefined for other text. */
export function parseTag(text: string): Tag | undefined {
  const [, name, value] = TAG.exec(text) ?? [];
  return name !== undefined && value !== undefined ? { name, value } : undefined;
}

/** Parses the valid tags of a query, sorted and without repetitions, so that a cursor does not depend on their order. */
export function parseTags(texts: string | readonly string[] = []): Tag[] {
  return [...new Set([texts].flat().sort())].flatMap((text) => parseTag(text) ?? []);
}
