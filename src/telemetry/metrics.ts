import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client';
import { CHAT_PROVIDERS, CHAT_STATUSES } from '../domain/chat.ts';
import { BOUNCE_REASONS, EMAIL_PROVIDERS } from '../domain/email.ts';
import { TRANSITIONS } from '../domain/email-states.ts';
import {
  accepted,
  answered,
  carried,
  claimed,
  handedOver,
  type MessageKind,
  noted,
  posted,
  providerCalled,
  quarantined,
  rescued,
  RESCUED_FROM,
  settlement,
  SETTLEMENTS,
} from './topics.ts';

/** Seconds. A call within a machine or to a provider, and one that hangs. */
const CALL = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Seconds. From a mail that goes at once to one that was tried for three hours. */
const WAIT = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 10_800];

/**
 * The metrics of this process: counts what it is told of in the topics. Labels are words from short lists, never what a
 * caller gave. `docs/metrics.md` is held to what stands here.
 * @returns the registry, for gauges of what is elsewhere; and what ends the counting
 */
export function startMetrics(): { readonly registry: Registry; readonly stop: () => void } {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });

  const messages = new Counter({
    name: 'sendwright_messages_accepted_total',
    help: 'Messages accepted for delivery, by themselves or in batches.',
    labelNames: ['kind', 'by'],
    registers,
  });
  const events = new Counter({
    name: 'sendwright_message_events_total',
    help: 'Lines of timelines: what became of messages. An email with several recipients may bounce or be delivered several times.',
    labelNames: ['kind', 'event'],
    registers,
  });
  const bounces = new Counter({
    name: 'sendwright_bounces_total',
    help: 'Bounces of email by their reason, one for each recipient.',
    labelNames: ['reason'],
    registers,
  });
  const lateness = new Histogram({
    name: 'sendwright_schedule_lateness_seconds',
    help: 'How long after its time a scheduled email was claimed by a worker.',
    buckets: WAIT,
    registers,
  });
  const toProvider = new Histogram({
    name: 'sendwright_time_to_provider_seconds',
    help: 'From when a message was due (at once, or at its time) until a provider had taken it, all attempts included.',
    labelNames: ['kind'],
    buckets: WAIT,
    registers,
  });
  const calls = new Histogram({
    name: 'sendwright_provider_call_duration_seconds',
    help: 'Calls to providers: to send, to find what a broken call came to, to ask for lost reports.',
    labelNames: ['provider', 'operation'],
    buckets: CALL,
    registers,
  });
  const outcomes = new Counter({
    name: 'sendwright_provider_outcomes_total',
    help: 'What messages came to in calls to send; whether questions were answered in the others.',
    labelNames: ['provider', 'operation', 'outcome'],
    registers,
  });
  const ambiguous = new Counter({
    name: 'sendwright_ambiguous_sends_total',
    help: 'What became of messages in calls whose end nobody saw.',
    labelNames: ['kind', 'provider', 'outcome'],
    registers,
  });
  const rescues = new Counter({
    name: 'sendwright_rescued_messages_total',
    help: 'Messages that upkeep gave a new workflow, by the state in which it found the old one.',
    labelNames: ['kind', 'state'],
    registers,
  });
  const quarantines = new Counter({
    name: 'sendwright_messages_quarantined_total',
    help: 'Messages that ended the processes which delivered them, and that failed for that.',
    labelNames: ['kind'],
    registers,
  });
  const rows = new Counter({
    name: 'sendwright_outbox_carried_total',
    help: 'Outbox rows that the relay asked Temporal for, by what they ask.',
    labelNames: ['action', 'outcome'],
    registers,
  });
  const posts = new Histogram({
    name: 'sendwright_webhook_attempt_duration_seconds',
    help: 'Posts to customers’ endpoints.',
    labelNames: ['outcome'],
    buckets: CALL,
    registers,
  });
  const requests = new Histogram({
    name: 'sendwright_http_request_duration_seconds',
    help: 'Requests to the API and the dashboard, from their first byte to the end of the answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: CALL,
    registers,
  });

  // A counter that comes into being with its first increase has not increased, to Prometheus.
  const emailEvents = Object.values(TRANSITIONS).flatMap(({ event }) => event?.slice('email.'.length) ?? []);
  const kinds: readonly [MessageKind, readonly string[], readonly string[]][] = [
    ['email', emailEvents, EMAIL_PROVIDERS],
    ['chatapp', CHAT_STATUSES.filter((status) => status !== 'queued'), CHAT_PROVIDERS],
  ];
  for (const [kind, names, providers] of kinds) {
    for (const event of names) events.inc({ kind, event }, 0);
    for (const state of RESCUED_FROM) rescues.inc({ kind, state }, 0);
    for (const provider of providers) {
      for (const outcome of SETTLEMENTS) ambiguous.inc({ kind, provider, outcome }, 0);
    }
  }
  quarantines.inc({ kind: 'email' }, 0);
  for (const reason of BOUNCE_REASONS) bounces.inc({ reason }, 0);

  const stops = [
    accepted.listen(({ kind, by, count }) => messages.inc({ kind, by }, count)),
    noted.listen(({ kind, event, count, reasons = [] }) => {
      events.inc({ kind, event }, count);
      for (const [reason, of] of reasons) bounces.inc({ reason }, of);
    }),
    claimed.listen((news) => {
      for (const seconds of news.lateness) lateness.observe(seconds);
    }),
    handedOver.listen(({ kind, after }) => {
      for (const seconds of after) toProvider.observe({ kind }, seconds);
    }),
    providerCalled.listen(({ provider, operation, seconds, outcomes: counts }) => {
      calls.observe({ provider, operation }, seconds);
      for (const [outcome, count] of counts) outcomes.inc({ provider, operation, outcome }, count);
    }),
    settlement.listen(({ kind, provider, outcome, count }) => ambiguous.inc({ kind, provider, outcome }, count)),
    rescued.listen(({ kind, state, count }) => rescues.inc({ kind, state }, count)),
    quarantined.listen(({ kind, count }) => quarantines.inc({ kind }, count)),
    carried.listen(({ action, outcome, count }) => rows.inc({ action, outcome }, count)),
    posted.listen(({ outcome, seconds }) => posts.observe({ outcome }, seconds)),
    answered.listen(({ method, route, status, seconds }) => requests.observe({ method, route, status }, seconds)),
  ];
  return {
    registry,
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}
