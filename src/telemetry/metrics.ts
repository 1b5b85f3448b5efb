import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client';
import { CHAT_PROVIDERS, CHAT_STATUSES } from '../domain/chat/chat.ts';
import { SMS_STATUSES } from '../domain/sms/sms.ts';
import { BOUNCE_REASONS, EMAIL_PROVIDERS } from '../domain/email/email.ts';
import { TRANSITIONS } from '../domain/email/states.ts';
import {
  messagesAccepted,
  requestAnswered,
  outboxDispatched,
  messagesClaimed,
  messagesSent,
  type MessageKind,
  eventsRecorded,
  webhookPosted,
  providerCalled,
  messagesQuarantined,
  requestsNotLogged,
  CALLBACK_DROP_REASONS,
  callbacksDropped,
  messagesRescued,
  RESCUED_STATES,
  ambiguousCallsResolved,
  AMBIGUOUS_OUTCOMES,
} from './topics.ts';

/** Buckets in seconds, from a call on the same host to a provider call that times out. */
const CALL_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Buckets in seconds, from an email that is sent immediately to one that was retried for three hours. */
const WAIT_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 10_800];

/**
 * Counts the events of the topics in this process. Label values come from fixed lists, never from callers. A test compares
 * `docs/metrics.md` with these metrics.
 * @returns the registry, to which gauges can be added, and a function that stops the counting
 */
export function startMetrics(): { readonly registry: Registry; readonly stop: () => void } {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> =>
    new Counter({ name, help, labelNames, registers });
  const histogram = <Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[] = [],
  ): Histogram<Label> => new Histogram({ name, help, buckets, labelNames, registers });

  const messages = counter(
    'sendwright_messages_accepted_total',
    'Messages accepted for delivery, singly or in batches.',
    ['kind', 'by'],
  );
  const events = counter(
    'sendwright_message_events_total',
    'Entries of timelines, by event. An email with several recipients may be delivered or bounce several times.',
    ['kind', 'event'],
  );
  const bounces = counter('sendwright_bounces_total', 'Bounces of email by reason, one for each recipient.', [
    'reason',
  ]);
  const lateness = histogram(
    'sendwright_schedule_lateness_seconds',
    'Time from the scheduled time of a message to its claim by a worker.',
    WAIT_SECONDS,
    ['kind'],
  );
  const toProvider = histogram(
    'sendwright_time_to_provider_seconds',
    'Time from when a message was due until a provider accepted it, over all attempts.',
    WAIT_SECONDS,
    ['kind'],
  );
  const calls = histogram(
    'sendwright_provider_call_duration_seconds',
    'Duration of calls to providers: to send, to look up ambiguous calls, and to fetch missing reports.',
    CALL_SECONDS,
    ['provider', 'operation'],
  );
  const outcomes = counter(
    'sendwright_provider_outcomes_total',
    'Outcomes of messages in calls to send; for other calls, whether the provider answered.',
    ['provider', 'operation', 'outcome'],
  );
  const ambiguous = counter('sendwright_ambiguous_sends_total', 'How messages of ambiguous calls were resolved.', [
    'kind',
    'provider',
    'outcome',
  ]);
  const rescues = counter(
    'sendwright_rescued_messages_total',
    'Messages for which upkeep started a new workflow, by the state of the old one.',
    ['kind', 'state'],
  );
  const quarantines = counter(
    'sendwright_messages_quarantined_total',
    'Messages that failed because they crashed the processes that delivered them.',
    ['kind'],
  );
  const rows = counter(
    'sendwright_outbox_dispatched_total',
    'Outbox rows for which the relay made a request to Temporal, by action and outcome.',
    ['action', 'outcome'],
  );
  const posts = histogram(
    'sendwright_webhook_attempt_duration_seconds',
    'Duration of posts to customers’ endpoints.',
    CALL_SECONDS,
    ['outcome'],
  );
  const requests = histogram(
    'sendwright_http_request_duration_seconds',
    'Duration of requests to the API and the dashboard, from the first byte of the request to the end of the response.',
    CALL_SECONDS,
    ['method', 'route', 'status'],
  );
  const unlogged = counter(
    'sendwright_requests_not_logged_total',
    'Requests that are missing in the log of API requests, because the log could not keep up.',
    [],
  );
  const dropped = counter(
    'sendwright_callbacks_dropped_total',
    'Callbacks of providers about unknown messages, and messages of users, that were refused or deleted because there were too many.',
    ['reason'],
  );

  // A counter that first appears with the value 1 shows no increase in Prometheus, so each starts at 0.
  const emailEvents = Object.values(TRANSITIONS).flatMap(({ event }) => event?.slice('email.'.length) ?? []);
  const messageEvents = (statuses: readonly string[]) => [
    'rescheduled',
    ...statuses.filter((status) => status !== 'queued' && status !== 'scheduled'),
  ];
  const kinds: readonly [MessageKind, readonly string[], readonly string[]][] = [
    ['email', emailEvents, EMAIL_PROVIDERS],
    ['chatapp', messageEvents(CHAT_STATUSES), CHAT_PROVIDERS],
    ['sms', messageEvents(SMS_STATUSES), ['twilio']],
  ];
  for (const [kind, names, providers] of kinds) {
    for (const event of names) events.inc({ kind, event }, 0);
    for (const state of RESCUED_STATES) rescues.inc({ kind, state }, 0);
    for (const provider of providers) {
      for (const outcome of AMBIGUOUS_OUTCOMES) ambiguous.inc({ kind, provider, outcome }, 0);
    }
  }
  quarantines.inc({ kind: 'email' }, 0);
  for (const reason of BOUNCE_REASONS) bounces.inc({ reason }, 0);
  for (const reason of CALLBACK_DROP_REASONS) dropped.inc({ reason }, 0);

  const stops = [
    messagesAccepted.listen(({ kind, by, count }) => messages.inc({ kind, by }, count)),
    eventsRecorded.listen(({ kind, event, count, reasons = [] }) => {
      events.inc({ kind, event }, count);
      for (const [reason, bounceCount] of reasons) bounces.inc({ reason }, bounceCount);
    }),
    messagesClaimed.listen(({ kind, overdueSeconds }) => {
      for (const seconds of overdueSeconds) lateness.observe({ kind }, seconds);
    }),
    messagesSent.listen(({ kind, secondsAfterDue }) => {
      for (const seconds of secondsAfterDue) toProvider.observe({ kind }, seconds);
    }),
    providerCalled.listen(({ provider, operation, seconds, outcomes: counts }) => {
      calls.observe({ provider, operation }, seconds);
      for (const [outcome, count] of counts) outcomes.inc({ provider, operation, outcome }, count);
    }),
    ambiguousCallsResolved.listen(({ kind, provider, outcome, count }) =>
      ambiguous.inc({ kind, provider, outcome }, count),
    ),
    messagesRescued.listen(({ kind, state, count }) => rescues.inc({ kind, state }, count)),
    messagesQuarantined.listen(({ kind, count }) => quarantines.inc({ kind }, count)),
    outboxDispatched.listen(({ action, outcome, count }) => rows.inc({ action, outcome }, count)),
    webhookPosted.listen(({ outcome, seconds }) => posts.observe({ outcome }, seconds)),
    requestsNotLogged.listen(({ count }) => unlogged.inc(count)),
    callbacksDropped.listen(({ reason, count }) => dropped.inc({ reason }, count)),
    requestAnswered.listen(({ method, route, status, seconds }) =>
      requests.observe({ method, route, status }, seconds),
    ),
  ];
  return {
    registry,
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}
