import { REPORTED_STATUSES } from '../../src/domain/email/states.ts';
import { groupBy } from '../../src/lib/group.ts';
import type { SenderEntry } from './generator.ts';

/** A message as the API lists it. */
export interface ApiMessage {
  readonly id: string;
  readonly batch_id: string | null;
  /** Its recipient, which identifies it. */
  readonly to: string;
  readonly status: string;
}

/** The records of all parties about the messages of a run. */
export interface Evidence {
  readonly sender: readonly SenderEntry[];
  readonly api: readonly ApiMessage[];
  /** By recipient: when the provider accepted a message to it, in Unix milliseconds. */
  readonly provider: ReadonlyMap<string, readonly number[]>;
  /** By message: ambiguous attempts that were followed by another one. */
  readonly ambiguous: ReadonlyMap<string, number>;
  /** Messages whose last attempt is ambiguous and was not repeated, since all repeats were used up. */
  readonly unresolved: ReadonlySet<string>;
  /** Messages that failed although no attempt handed them over to a provider. */
  readonly unattempted: ReadonlySet<string>;
  /** Ids of workflows of messages that are open. */
  readonly openWorkflows: readonly string[];
  /** Events of the messages' timelines. */
  readonly events: readonly { readonly id: string; readonly type: string; readonly message: string }[];
  /** Ids of the events that the customer's endpoint has accepted. */
  readonly webhooks: ReadonlySet<string>;
}

/** Violations as sentences. */
export interface Violations {
  /** Accepted and unknown to the API, or listed as sent and never at the provider. */
  readonly lost: string[];
  /** At the provider more often than its ambiguous attempts explain. */
  readonly twice: string[];
  /** The API and the provider or the sender disagree. */
  readonly contradicted: string[];
  /** Failed, though no fault lasts as long as the retries, and not because of an ambiguous attempt. */
  readonly failed: string[];
  /** Failed without an attempt that handed it over. */
  readonly unattempted: string[];
  /** Refused by the API, though the generator's requests are valid. */
  readonly refused: string[];
  /** At the provider before it was due. */
  readonly early: string[];
  /** Events that the endpoint did not receive. */
  readonly missingWebhooks: string[];
  /** Workflows that are open although all messages have ended. */
  readonly open: string[];
}

export interface Verdict {
  readonly accepted: number;
  /** Messages that the provider has. */
  readonly received: number;
  /** Messages that it has twice, as an ambiguous attempt explains. */
  readonly explained: number;
  /** Messages that failed after an ambiguous attempt without a repeat left, as docs/guarantees.md states. */
  readonly unresolved: number;
  /** Ambiguous attempts that were followed by another one. */
  readonly ambiguous: number;
  readonly webhooks: number;
  /** Messages that have not ended. Violations count when there are none, or after the timeout. */
  readonly pending: string[];
  readonly violations: Violations;
}

const PENDING = new Set(['queued', 'scheduled']);
/** Statuses of emails and chat-app messages that the provider has. */
const STATUSES_AFTER_SEND = new Set<string>([...REPORTED_STATUSES, 'read']);
/** Rounding of the clocks of two processes of one machine. */
const ROUNDING_MS = 2;

/** Compares the records of all parties. */
export function check(evidence: Evidence): Verdict {
  const listed = groupBy(evidence.api, ({ to }) => to);
  const violations: Violations = {
    lost: [],
    twice: [],
    contradicted: [],
    failed: [],
    unattempted: [],
    refused: [],
    early: [],
    missingWebhooks: [],
    open: [...evidence.openWorkflows],
  };
  const pending: string[] = [];
  const known = new Set<string>();
  let accepted = 0;
  let explained = 0;
  let unresolved = 0;

  const canceled = new Set(evidence.sender.flatMap((entry) => (entry.kind === 'canceled' ? entry.to : [])));
  for (const entry of evidence.sender) {
    if (entry.kind === 'canceled') continue;
    const existing = entry.to.filter((to) => listed.has(to));
    if (entry.kind === 'accepted') accepted += entry.to.length;
    else if (existing.length > 0 && existing.length < entry.to.length) {
      violations.contradicted.push(`${existing.length} of ${entry.to.length} members of a batch exist: ${entry.why}`);
    }
    if (entry.kind === 'refused' && !entry.isExpected) violations.refused.push(entry.why);
    for (const to of entry.to) {
      known.add(to);
      checkOne(entry, to);
    }
  }
  for (const { id, to } of evidence.api)
    if (!known.has(to)) violations.contradicted.push(`${id}: unknown to the sender`);
  for (const { id, type, message } of evidence.events) {
    if (!evidence.webhooks.has(id)) violations.missingWebhooks.push(`${message}: ${type} ${id}`);
  }

  function checkOne(entry: Exclude<SenderEntry, { kind: 'canceled' }>, to: string): void {
    const messages = listed.get(to) ?? [];
    const arrivals = evidence.provider.get(to) ?? [];
    const [message] = messages;
    if (!message) {
      if (entry.kind === 'accepted') violations.lost.push(`${entry.id} to ${to}: the API does not know it`);
      else if (arrivals.length > 0)
        violations.contradicted.push(`to ${to}: sent, though it was not accepted: ${entry.why}`);
      return;
    }
    if (entry.kind === 'refused') violations.contradicted.push(`${message.id}: stored, though refused: ${entry.why}`);
    if (messages.length > 1) violations.contradicted.push(`to ${to}: stored ${messages.length} times for one request`);
    if (entry.kind === 'accepted' && entry.id !== (message.batch_id ?? message.id)) {
      violations.contradicted.push(`${message.id}: accepted as ${entry.id}`);
    }
    const isEarly =
      entry.kind === 'accepted' &&
      entry.due !== null &&
      arrivals.some((at) => at + ROUNDING_MS < Date.parse(entry.due as string));
    if (isEarly) violations.early.push(`${message.id}: before its time`);
    if (canceled.has(to) && message.status !== 'canceled') {
      violations.contradicted.push(`${message.id}: ${message.status}, though the API reported it as canceled`);
    }
    judge(message, arrivals.length);
  }

  function judge({ id, status }: ApiMessage, times: number): void {
    if (PENDING.has(status)) pending.push(`${id}: ${status}`);
    else if (status === 'failed' && evidence.unattempted.has(id)) violations.unattempted.push(id);
    else if (status === 'failed' && evidence.unresolved.has(id)) unresolved++;
    else if (status === 'failed') violations.failed.push(`${id}: at the provider ${times} times`);
    else if (!STATUSES_AFTER_SEND.has(status)) {
      if (times > 0) violations.contradicted.push(`${id}: ${status}, and at the provider`);
    } else if (times === 0) violations.lost.push(`${id}: ${status}, and not at the provider`);
    if (times < 2) return;
    if ((evidence.ambiguous.get(id) ?? 0) >= times - 1) explained++;
    else violations.twice.push(`${id}: at the provider ${times} times`);
  }

  return {
    accepted,
    received: [...evidence.provider.keys()].filter((to) => known.has(to)).length,
    explained,
    unresolved,
    ambiguous: [...evidence.ambiguous.values()].reduce((sum, count) => sum + count, 0),
    webhooks: evidence.webhooks.size,
    pending,
    violations,
  };
}

/** All violations, one sentence each. */
export function sentences(violations: Violations): string[] {
  return Object.entries(violations).flatMap(([kind, list]: [string, string[]]) => list.map((one) => `${kind}: ${one}`));
}
