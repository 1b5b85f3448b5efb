import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

/** UTF-16 units of what a failure says of itself. */
const LENGTH = 3_000;

/**
 * A reporter for `node --test` that tells only of failures: where each is, and what it says. A run prints ten thousand
 * lines, and where only the last of them are kept they are these.
 */
export default async function* failures(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    if (event.type !== 'test:fail') continue;
    const { name, file, line, details } = event.data;
    const { error } = details;
    // Whatever holds a failed test has failed too, which says nothing more.
    if ('failureType' in error && error.failureType === 'subtestsFailed') continue;
    yield `✖ ${name} (${file ?? 'no file'}:${line ?? '?'})\n${inspect(error.cause).slice(0, LENGTH)}\n\n`;
  }
}
