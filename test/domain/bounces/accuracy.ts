import { readFileSync } from 'node:fs';
import { classifier } from '../../../src/domain/bounces/bounces.ts';
import { expression } from '../../../src/domain/bounces/rules/expression.ts';
import { readCodes } from '../../../src/domain/bounces/codes.ts';
import { readableWords } from '../../../src/domain/bounces/words.ts';
import { RULES } from '../../../src/domain/bounces/rules/rules.ts';
import { SUPPRESSING } from '../../../src/domain/email/suppression.ts';
import type { BounceReason } from '../../../src/domain/email/email.ts';

export interface LabelledReply {
  readonly reply: string;
  readonly reason: BounceReason;
  /** Before the colon: the collection, document or program that the reply comes from. */
  readonly source: string;
}

/** Counts of replies, and of right reasons and right decisions about suppression among them. */
export interface Accuracy {
  replies: number;
  reasons: number;
  suppressions: number;
}

/** Reads a table of replies beside this file: response, bounce_reason, source, separated by tabs, below a heading. */
export function readReplies(file: string): LabelledReply[] {
  const [, ...lines] = readFileSync(new URL(file, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n');
  return lines.map((line) => {
    const [reply = '', reason, source = ''] = line.split('\t');
    return { reply, reason: reason as BounceReason, source: source.split(':')[0] ?? '' };
  });
}

type Classify = (reply: string) => BounceReason | undefined;

/** Measures a classifier by a key of each reply. */
export function measure(
  replies: readonly LabelledReply[],
  classify: Classify,
  keyOf: (reply: LabelledReply) => string,
): Map<string, Accuracy> {
  const result = new Map<string, Accuracy>();
  for (const labelled of replies) {
    const key = keyOf(labelled);
    const accuracy = result.get(key) ?? { replies: 0, reasons: 0, suppressions: 0 };
    result.set(key, accuracy);
    const reason = classify(labelled.reply) ?? 'unknown';
    accuracy.replies++;
    if (reason === labelled.reason) accuracy.reasons++;
    if (SUPPRESSING[reason] === SUPPRESSING[labelled.reason]) accuracy.suppressions++;
  }
  return result;
}

export function sum(accuracies: Iterable<Accuracy>): Accuracy {
  const total = { replies: 0, reasons: 0, suppressions: 0 };
  for (const { replies, reasons, suppressions } of accuracies) {
    total.replies += replies;
    total.reasons += reasons;
    total.suppressions += suppressions;
  }
  return total;
}

export function percent(count: number, { replies }: Accuracy): number {
  return (100 * count) / replies;
}

/** One line for each key: replies, per cent of right reasons, per cent of right decisions about suppression. */
export function table(title: string, accuracies: ReadonlyMap<string, Accuracy>): string[] {
  const rows = [...accuracies].sort(([, a], [, b]) => b.replies - a.replies);
  const line = (name: string, accuracy: Accuracy): string =>
    [
      name.padEnd(24),
      String(accuracy.replies).padStart(5),
      percent(accuracy.reasons, accuracy).toFixed(1).padStart(7),
      percent(accuracy.suppressions, accuracy).toFixed(1).padStart(7),
    ].join('');
  return [
    `${title.padEnd(24)}  all reason suppress`,
    ...rows.map(([name, accuracy]) => line(name, accuracy)),
    line('together', sum(accuracies.values())),
  ];
}

/**
 * Measures each source without what was learned from it alone: phrases that match one of its replies and no reply of
 * another source are left out.
 * @param keyOf by what the replies are counted
 */
export function leaveOneSourceOut(
  replies: readonly LabelledReply[],
  keyOf: (reply: LabelledReply) => string,
): Map<string, Accuracy> {
  const words = replies.map(({ reply, source }) => ({ source, words: readableWords(reply, readCodes(reply)) }));
  const onlySource = new Map<string, string>();
  for (const phrase of new Set(RULES.flatMap((rule) => rule.phrases))) {
    const pattern = expression([phrase]);
    const sources = new Set(words.filter((candidate) => pattern.test(candidate.words)).map(({ source }) => source));
    const [source] = sources;
    if (source !== undefined && sources.size === 1) onlySource.set(phrase, source);
  }
  const result = new Map<string, Accuracy>();
  for (const source of new Set(replies.map((reply) => reply.source))) {
    const rules = RULES.map((rule) => ({
      ...rule,
      phrases: rule.phrases.filter((phrase) => onlySource.get(phrase) !== source),
    })).filter(({ phrases }) => phrases.length > 0);
    const own = replies.filter((reply) => reply.source === source);
    for (const [key, accuracy] of measure(own, classifier(rules), keyOf)) {
      const before = result.get(key);
      result.set(key, before ? sum([before, accuracy]) : accuracy);
    }
  }
  return result;
}
