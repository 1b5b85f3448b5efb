import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

/** Maximum length of an error. */
const LENGTH = 3_000;

/**
 * A reporter for `node --test` that prints only failures with their place, so that they are the last of ten thousand lines.
 */
export default async function* failures(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'test:fail') continue;
    const { name, file, line, details } = event.data;
    const { error } = details;
    // A suite fails with its tests.
    if ('failureType' in error && error.failureType === 'subtestsFailed') continue;
    yield `✖ ${name} (${file ?? 'no file'}:${line ?? '?'})\n${inspect(error.cause).slice(0, LENGTH)}\n\n`;
  }
}
