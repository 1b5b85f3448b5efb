import { REPORTED } from '../../src/domain/email/states.ts';
import type { SenderEntry } from './generator.ts';

/** What the API says of one message. */
export interface ApiMessage {
  readonly id: string;
  readonly batch_id: string | null;
  /** The recipient by whom it is known. */
  readonly to: string;
  readonly status: string;
}

/** What everybody saw, each in his own ledger. */
export interface Evidence {
  readonly sender: readonly SenderEntry[];
  readonly api: readonly ApiMessage[];
  /** By recipient: when the provider took a message to him, in Unix milliseconds. */
  readonly provider: ReadonlyMap<string, readonly number[]>;
  /** By message: attempts of which nobody could say how they ended, and that were followed by another one. */
  readonly ambiguous: ReadonlyMap<string, number>;
  /** Messages whose last attempt is ambiguous and was not repeated, since all repeats were used up. */
  readonly unresolved: ReadonlySet<string>;
  /** Lines of the messages' timelines. */
  readonly events: readonly { readonly id: string; readonly type: string; readonly message: string }[];
  /** Ids of the events that the customer's endpoint has taken. */
  readonly webhooks: ReadonlySet<string>;
}

/** What is wrong, in sentences; nothing is when all lists are empty. */
export interface Violations {
  /** Accepted, and not known to the API, or said to be sent and never at the provider. */
  readonly lost: string[];
  /** At the provider more often than its ambiguous attempts explain. */
  readonly twice: string[];
  /** The API says one thing, the provider or the sender another. */
  readonly contradicted: string[];
  /** Given up, though no fault lasts as long as the tries do, and no ambiguous attempt is the reason. */
  readonly failed: string[];
  /** At the provider before its time. */
  readonly early: string[];
  /** Events that the endpoint never got. */
  readonly missingWebhooks: string[];
}

export interface Verdict {
  readonly accepted: number;
  /** Messages that the provider has. */
  readonly taken: number;
  /** Messages that it has twice, as an ambiguous attempt explains. */
  readonly explained: number;
  /** Messages that failed because no repeat was left after an ambiguous attempt, as the guarantees state. */
  readonly unresolved: number;
  /** Attempts after which nobody could say whether the provider had the message. */
  readonly ambiguous: number;
  readonly webhooks: number;
  /** Not at their end yet. What is wrong counts when nothing is waiting, or when too long was waited. */
  readonly waiting: string[];
  readonly violations: Violations;
}

const WAITING = new Set(['queued', 'scheduled']);
/** The provider has it: of emails and of chat-app messages. */
const HANDED_OVER = new Set<string>([...REPORTED, 'read']);
/** Milliseconds by which the clocks of two processes of one machine may differ when they are rounded. */
const ROUNDING = 2;

/** Compares what everybody saw. */
export function check(evidence: Evidence): Verdict {
  const told = new Map<string, ApiMessage[]>();
  for (const message of evidence.api) told.set(message.to, [...(told.get(message.to) ?? []), message]);
  const violations: Violations = { lost: [], twice: [], contradicted: [], failed: [], early: [], missingWebhooks: [] };
  const waiting: string[] = [];
  const known = new Set<string>();
  let accepted = 0;
  let explained = 0;
  let unresolved = 0;

  const canceled = new Set(evidence.sender.flatMap((entry) => (entry.is === 'canceled' ? entry.to : [])));
  for (const entry of evidence.sender) {
    if (entry.is === 'canceled') continue;
    const existing = entry.to.filter((to) => told.has(to));
    if (entry.is === 'accepted') accepted += entry.to.length;
    else if (existing.length > 0 && existing.length < entry.to.length) {
      violations.contradicted.push(`${existing.length} of ${entry.to.length} members of a batch exist: ${entry.why}`);
    }
    for (const to of entry.to) {
      known.add(to);
      checkOne(entry, to);
    }
  }
  for (const { id, to } of evidence.api) if (!known.has(to)) violations.contradicted.push(`${id}: nobody sent it`);
  for (const { id, type, message } of evidence.events) {
    if (!evidence.webhooks.has(id)) violations.missingWebhooks.push(`${message}: ${type} ${id}`);
  }

  function checkOne(entry: Exclude<SenderEntry, { is: 'canceled' }>, to: string): void {
    const messages = told.get(to) ?? [];
    const arrivals = evidence.provider.get(to) ?? [];
    const [message] = messages;
    if (!message) {
      if (entry.is === 'accepted') violations.lost.push(`${entry.id} to ${to}: the API does not know it`);
      else if (arrivals.length > 0)
        violations.contradicted.push(`to ${to}: sent, though it was not accepted: ${entry.why}`);
      return;
    }
    if (entry.is === 'refused') violations.contradicted.push(`${message.id}: stored, though refused: ${entry.why}`);
    if (messages.length > 1) violations.contradicted.push(`to ${to}: stored ${messages.length} times for one request`);
    if (entry.is === 'accepted' && entry.id !== (message.batch_id ?? message.id)) {
      violations.contradicted.push(`${message.id}: accepted as ${entry.id}`);
    }
    const isEarly =
      entry.is === 'accepted' &&
      entry.due !== null &&
      arrivals.some((at) => at + ROUNDING < Date.parse(entry.due as string));
    if (isEarly) violations.early.push(`${message.id}: before its time`);
    if (canceled.has(to) && message.status !== 'canceled') {
      violations.contradicted.push(`${message.id}: ${message.status}, though the API said that it was canceled`);
    }
    judge(message, arrivals.length);
  }

  function judge({ id, status }: ApiMessage, times: number): void {
    if (WAITING.has(status)) waiting.push(`${id}: ${status}`);
    else if (status === 'failed' && evidence.unresolved.has(id)) unresolved++;
    else if (status === 'failed') violations.failed.push(`${id}: at the provider ${times} times`);
    else if (!HANDED_OVER.has(status)) {
      if (times > 0) violations.contradicted.push(`${id}: ${status}, and at the provider`);
    } else if (times === 0) violations.lost.push(`${id}: ${status}, and not at the provider`);
    if (times < 2) return;
    if ((evidence.ambiguous.get(id) ?? 0) >= times - 1) explained++;
    else violations.twice.push(`${id}: at the provider ${times} times`);
  }

  return {
    accepted,
    taken: [...evidence.provider.keys()].filter((to) => known.has(to)).length,
    explained,
    unresolved,
    ambiguous: [...evidence.ambiguous.values()].reduce((sum, count) => sum + count, 0),
    webhooks: evidence.webhooks.size,
    waiting,
    violations,
  };
}

/** Everything that is wrong, one sentence each. */
export function sentences(violations: Violations): string[] {
  return Object.entries(violations).flatMap(([what, list]: [string, string[]]) => list.map((one) => `${what}: ${one}`));
}
