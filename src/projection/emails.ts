import type { BounceReason, EmailStatus } from '../domain/email/email.ts';
import { type EmailChange, nextStatus, type Transition, TRANSITIONS } from '../domain/email/states.ts';
import { SUPPRESSING, type SuppressionOrigin } from '../domain/email/suppression.ts';
import { eventDetail } from '../domain/event-detail.ts';
import { newId } from '../lib/ids.ts';
import { groupBy } from '../lib/group.ts';
import {
  type EmailChangeInput,
  checkReports,
  type EmailUpdate,
  insertEmailEvents,
  lockChanging,
  moveEmail,
  type RecordedChange,
  type ReportedChange,
  updateEmails,
} from '../store/emails/changes.ts';
import { recordBatchMoves } from '../store/emails/batches.ts';
import { highestReports, reportRecipients } from '../store/emails/recipients.ts';
import { insertOutbox } from '../store/outbox/outbox.ts';
import { afterCommit, type Db, inTransaction } from '../store/postgres/pool.ts';
import { addStatistics, type StatAddition } from '../store/statistics/additions.ts';
import { addSuppressions, type NewSuppression } from '../store/suppressions/suppressions.ts';
import { enqueueEvents, enqueueFor, findEndpointsOf, type NewWebhookEvent } from '../store/webhooks/events.ts';
import { eventsRecorded, tally } from '../telemetry/topics.ts';
import { emailDimensions, type Progress, countChange } from './statistics.ts';

/** One of several changes that are applied together. Rescheduling has its own function. */
export interface RequestedChange<C extends EmailChange = Exclude<EmailChange, 'rescheduled'>> {
  readonly change: C;
  readonly input: EmailChangeInput;
}

/** Applies one change to emails like `projectChanges`. @returns its `ids` */
export async function project(
  db: Db,
  change: RequestedChange['change'],
  emails: readonly EmailChangeInput[],
  orgId?: string,
): Promise<string[]> {
  const changes = emails.map((input) => ({ change, input }));
  return (await projectChanges(db, changes, orgId)).ids;
}

/**
 * The only writer of an email's status after its creation. It applies changes, in their order, to the emails whose status
 * allows them, adds them to their timelines, queues webhooks and adds recipients to the suppression list, all in the caller's
 * transaction, or in one of its own if `db` is a pool. An email may occur several times, also for several recipients.
 * @param orgId restricts the changes to emails of this organization
 * @returns ids of the emails that were changed or got a timeline entry, one per recipient; and the changes that were refused
 * because a callback's evidence does not match the email
 */
export async function projectChanges(
  db: Db,
  changes: readonly RequestedChange[],
  orgId?: string,
): Promise<{ ids: string[]; refused: readonly EmailChangeInput[] }> {
  if (changes.length === 0) return { ids: [], refused: [] };
  return inTransaction(db, async (client, commitWith) => {
    const isVisible = changes.some(({ change }) => TRANSITIONS[change].event !== null);
    const [{ steps, refused }, endpoints] = await Promise.all([
      findSteps(client, changes, orgId),
      isVisible ? findEndpointsOf(client, idsOf(changes)) : [],
    ]);
    const suppressions = suppressionsOf(steps);
    const changing = Promise.all([
      recordSteps(client, steps, new Set(endpoints.map(({ org_id }) => org_id))),
      enqueueFor(client, endpoints, endpoints.length === 0 ? [] : webhookEvents(steps)),
    ]);
    await (suppressions.length === 0 ? commitWith(changing) : changing);
    await addSuppressions(client, suppressions);
    afterCommit(client, () => publishSteps(steps));
    return { ids: steps.map(({ input }) => input.id), refused };
  });
}

function idsOf(changes: readonly RequestedChange<EmailChange>[]): string[] {
  return [...new Set(changes.map(({ input }) => input.id))];
}

/** A change that the status of its email allows, and that is not recorded yet. */
interface Step extends RecordedChange {
  readonly change: EmailChange;
  /** True if the email gets the status of the transition; otherwise it only gets an event. */
  readonly isMoved: boolean;
}

/** Locks emails and finds the changes that their status and timeline allow. */
async function findSteps(
  client: Db,
  changes: readonly RequestedChange<EmailChange>[],
  orgId: string | undefined,
): Promise<{ steps: Step[]; refused: EmailChangeInput[] }> {
  const inputs = changes.map(({ change, input }) => ({ change, input, event_id: newId('evt') }));
  const [locked, checked] = await Promise.all([
    lockChanging(client, idsOf(changes), orgId ?? null),
    checkReports(client, inputs.flatMap(toReported)),
  ]);
  const checks = new Map(checked.map((check) => [check.event_id, check]));
  const keys = new Set<string>();
  const statuses = new Map<string, EmailStatus>();
  const times = new Map<string, number>();
  const steps: Step[] = [];
  const refused: EmailChangeInput[] = [];
  for (const { change, input, event_id } of inputs) {
    const email = locked.get(input.id);
    if (!email) continue;
    const { fits, is_recorded, sent_at } = checks.get(event_id) ?? UNREPORTED;
    if (!fits) {
      refused.push(input);
      continue;
    }
    // One call may contain the same report twice.
    const key = `${input.id} ${input.dedupe_key ?? event_id}`;
    if (is_recorded || keys.has(key)) continue;
    const { event, from, recordOnly, isByMachine: machine }: Transition = TRANSITIONS[change];
    const from_status = statuses.get(input.id) ?? email.status;
    const isMoved = from.includes(from_status);
    if (!isMoved && !recordOnly.includes(from_status)) continue;
    const to_status = nextStatus(from_status, change);
    const time = times.get(input.id) ?? email.next_event_at;
    const at = event === null ? undefined : (sent_at ?? new Date(time).toISOString());
    const { link, error, bounce_reason } = input;
    const detail = eventDetail({ link, error, bounce_reason, machine });
    steps.push({ change, event, input, event_id, email, isMoved, from_status, to_status, at, detail });
    statuses.set(input.id, to_status);
    times.set(input.id, time + 1);
    keys.add(key);
  }
  return { steps, refused };
}

const UNREPORTED = { fits: true, is_recorded: false, sent_at: null };

/** The input of `checkReports` for a change; none if it depends on the status of its email only. */
function toReported({
  change,
  event_id,
  input,
}: RequestedChange<EmailChange> & { readonly event_id: string }): ReportedChange[] {
  const { id: email_id, recipient, dedupe_key, occurred_at, evidence } = input;
  const is_sent = change === 'sent';
  return dedupe_key || evidence || is_sent
    ? [{ event_id, email_id, recipient, dedupe_key, is_sent, occurred_at, evidence }]
    : [];
}

/** Stores changes. @param publishing organizations with webhook endpoints */
async function recordSteps(client: Db, steps: readonly Step[], publishing: ReadonlySet<string>): Promise<void> {
  const { additions, progress } = statisticsOf(steps);
  const updates = new Map<string, EmailUpdate>();
  for (const step of steps) {
    const { id } = step.email;
    updates.set(id, Object.assign(toUpdate(step, updates.get(id)), progress.get(id)));
  }
  const reports = steps.flatMap(({ change, email, input: { id: email_id, recipient, error, bounce_reason } }) => {
    const status = TRANSITIONS[change].to;
    if (recipient === undefined || status === null || email.has_one_recipient) return [];
    return { email_id, recipient, status, error, bounce_reason };
  });
  await Promise.all([
    insertEmailEvents(client, steps, publishing),
    updateEmails(client, [...updates.values()]),
    reportRecipients(client, highestReports(reports)),
    recordBatchMoves(client, steps),
    addStatistics(client, additions),
  ]);
}

/** Returns the additions of changes to the statistics, and the progress of each email. */
function statisticsOf(steps: readonly Step[]): { additions: StatAddition[]; progress: ReadonlyMap<string, Progress> } {
  const additions: StatAddition[] = [];
  const progress = new Map<string, Progress>();
  for (const { email, change, from_status, at, input } of steps) {
    const { reached, bounced_for } = email;
    const status = TRANSITIONS[change].to;
    // An email of an earlier version is left to the backfill, which counts its timeline.
    if (reached === null || status === null) continue;
    const added = countChange(emailDimensions(email), progress.get(email.id) ?? { reached, bounced_for }, {
      statuses: [from_status, status],
      bounce_reason: input.bounce_reason,
      sent_at: change === 'sent' ? at : null,
      delivered_at: change === 'delivered' ? at : null,
    });
    if (added === undefined) continue;
    additions.push(added.addition);
    progress.set(email.id, added.progress);
  }
  return { additions, progress };
}

/** Returns the update of a change's email, after earlier changes of the same transaction. */
function toUpdate(
  { email: { id }, isMoved, to_status, at, input }: Step,
  earlier?: EmailUpdate,
): Omit<EmailUpdate, keyof Progress> {
  return {
    id,
    status: isMoved ? to_status : earlier?.status,
    error: isMoved ? input.error : earlier?.error,
    bounce_reason: isMoved ? input.bounce_reason : earlier?.bounce_reason,
    provider: input.provider ?? earlier?.provider,
    provider_message_id: input.provider_message_id ?? earlier?.provider_message_id,
    last_event_at: at ?? earlier?.last_event_at,
  };
}

/** Returns the webhook events of changes. */
function webhookEvents(steps: readonly Step[]): NewWebhookEvent[] {
  return steps.flatMap(
    ({ change, event, input, event_id, email: { id: message_id, org_id }, to_status: status, at }) => {
      const { recipient, error, bounce_reason: bounceReason, link } = input;
      const { isByMachine: machine }: Transition = TRANSITIONS[change];
      const data = { status, recipient, error, bounceReason, click: link && { link }, machine };
      return event === null ? [] : { event_id, org_id, type: event, created_at: at as string, message_id, data };
    },
  );
}

/** Returns the recipients that changes suppress. */
function suppressionsOf(steps: readonly Step[]): NewSuppression[] {
  return steps.flatMap(({ change, input: { recipient, bounce_reason }, email }) => {
    const origin = ORIGINS[change]?.(bounce_reason, email.marketing);
    if (recipient === undefined || origin === undefined) return [];
    const ids = { id: newId('sup'), org_id: email.org_id, message_id: email.id };
    return { ...ids, email: recipient, origin, ...(bounce_reason && { reason: bounce_reason }) };
  });
}

function publishSteps(steps: readonly Step[]): void {
  for (const [event, same] of groupBy(steps, (step) => step.event)) {
    if (event === null) continue;
    const reasons = tally(same.flatMap(({ input }) => input.bounce_reason ?? []));
    eventsRecorded.publish({ kind: 'email', event: event.slice('email.'.length), count: same.length, reasons });
  }
}

/** The suppression origin that results from a change; undefined if it suppresses no address. */
const ORIGINS: {
  readonly [C in EmailChange]?: (reason: BounceReason | undefined, marketing: boolean) => SuppressionOrigin | undefined;
} = {
  complained: () => 'complaint',
  unsubscribed: () => 'unsubscribe',
  bounced: (reason, marketing) => {
    if (reason === undefined || !SUPPRESSING[reason]) return undefined;
    if (reason !== 'provider_suppressed') return 'bounce';
    // Postmark also refuses marketing email to recipients who unsubscribed with its own link; other email reaches them.
    return marketing ? 'unsubscribe' : 'provider';
  },
};

/**
 * Reschedules an email, in the caller's transaction, or in one of its own if `db` is a pool.
 * @returns the new time; undefined if the email is not scheduled or the time is not allowed
 */
export async function projectReschedule(
  db: Db,
  orgId: string,
  id: string,
  scheduledAt: string,
): Promise<string | undefined> {
  return inTransaction(db, async (client) => {
    const { steps } = await findSteps(client, [{ change: 'rescheduled', input: { id } }], orgId);
    const moved = steps.length === 0 ? undefined : await moveEmail(client, id, scheduledAt);
    if (!moved) return undefined;
    await Promise.all([
      recordSteps(
        client,
        steps.map((step) => ({ ...step, detail: eventDetail(moved) })),
        // Stores the id of the event even if the organization has no endpoint: `enqueueEvents` reads the endpoints concurrently.
        new Set([orgId]),
      ),
      insertOutbox(client, 'reschedule', [id]),
      enqueueEvents(
        client,
        webhookEvents(steps).map((event) => ({
          ...event,
          data: { ...event.data, scheduledAt: moved.scheduled_at },
        })),
      ),
    ]);
    afterCommit(client, () => publishSteps(steps));
    return moved.scheduled_at;
  });
}
