import type { BounceReason } from '../domain/email/email.ts';
import { type EmailChange, nextStatus, type Transition, TRANSITIONS } from '../domain/email/states.ts';
import { SUPPRESSING, type SuppressionOrigin } from '../domain/email/suppression.ts';
import { newId } from '../domain/ids.ts';
import { groupBy } from '../lib/group.ts';
import { insertBatchMoves } from '../store/emails/batches.ts';
import {
  type Change,
  type ChangingEmail,
  findUnfitting,
  insertEmailEvents,
  lockChanging,
  moveEmail,
  updateEmails,
} from '../store/emails/changes.ts';
import { countMoved } from '../store/emails/hours.ts';
import { reportRecipients } from '../store/emails/recipients.ts';
import { insertOutbox } from '../store/outbox/outbox.ts';
import { afterCommit, type Db, inTransaction } from '../store/postgres/pool.ts';
import { addSuppressions, type NewSuppression } from '../store/suppressions/suppressions.ts';
import { enqueueEvents, enqueueFor, findEndpoints, type NewWebhookEvent } from '../store/webhooks/events.ts';
import { noted, tally } from '../telemetry/topics.ts';

/**
 * The only writer of an email's status after its creation. It applies one change to the emails whose status allows it, adds it
 * to their timelines, queues webhooks and adds recipients to the suppression list, all in the caller's transaction, or in one
 * of its own if `db` is a pool. An email may occur several times, for several recipients.
 * @param orgId restricts the change to emails of this organization
 * @returns ids of the emails that were changed or got a timeline entry, one per recipient
 */
export async function project(
  db: Db,
  change: Exclude<EmailChange, 'rescheduled'>,
  emails: readonly Change[],
  orgId?: string,
): Promise<string[]> {
  return (await projectClaims(db, change, emails, orgId)).ids;
}

/** Like `project`; also returns the changes that were refused because a callback's claim does not match the email. */
export async function projectClaims(
  db: Db,
  change: Exclude<EmailChange, 'rescheduled'>,
  emails: readonly Change[],
  orgId?: string,
): Promise<{ ids: string[]; refused: readonly Change[] }> {
  if (emails.length === 0) return { ids: [], refused: [] };
  const transition: Transition = TRANSITIONS[change];
  return inTransaction(db, async (client, commitWith) => {
    const { steps, refused } = await findSteps(client, transition, emails, orgId);
    const [applied, endpoints] = await Promise.all([
      recordEvents(client, transition, steps),
      transition.event === null ? [] : findEndpoints(client, [...new Set(steps.map(({ email }) => email.org_id))]),
    ]);
    const suppressions = suppressionsOf(change, applied);
    const changing = Promise.all([
      moveEmails(client, transition, applied),
      recordRecipients(client, transition, applied),
      enqueueFor(client, endpoints, endpoints.length === 0 ? [] : webhookEvents(change, applied)),
    ]);
    await (suppressions.length === 0 ? commitWith(changing) : changing);
    await addSuppressions(client, suppressions);
    const reasons = applied.flatMap(({ input }) => input.bounce_reason ?? []);
    afterCommit(client, () => publishChange(change, applied.length, tally(reasons)));
    return { ids: applied.map(({ input }) => input.id), refused };
  });
}

/** A change that the status of its email allows. */
interface Step {
  readonly input: Change;
  readonly event_id: string;
  /** As it is locked. */
  readonly email: ChangingEmail;
  /** Whether the email gets the status of the transition; otherwise it only gets an event. */
  readonly moves: boolean;
  /** The time of its event; undefined before it is recorded, and if the transition has none. */
  readonly at?: string | undefined;
}

/** Locks emails and finds the changes that their status allows. */
async function findSteps(
  client: Db,
  transition: Transition,
  emails: readonly Change[],
  orgId: string | undefined,
): Promise<{ steps: Step[]; refused: Change[] }> {
  const now = Date.now();
  const inputs = emails.map((input) => ({ input, event_id: newId('evt', now) }));
  const ids = [...new Set(emails.map(({ id }) => id))];
  const claimed = inputs.flatMap(({ event_id, input: { id, recipient, claim } }) =>
    claim ? { id, event_id, recipient, claim } : [],
  );
  const [locked, unfitting] = await Promise.all([
    lockChanging(client, ids, orgId ?? null),
    findUnfitting(client, claimed),
  ]);
  const steps: Step[] = [];
  const refused: Change[] = [];
  for (const { input, event_id } of inputs) {
    const email = locked.get(input.id);
    if (!email) continue;
    const moves = transition.from.includes(email.status);
    if (unfitting.has(event_id)) refused.push(input);
    else if (moves || transition.noted.includes(email.status)) steps.push({ input, event_id, email, moves });
  }
  return { steps, refused };
}

/** Adds the changes to timelines. @returns those that are new */
async function recordEvents(client: Db, { event }: Transition, steps: readonly Step[]): Promise<readonly Step[]> {
  if (event === null) return steps;
  const recorded = await insertEmailEvents(
    client,
    event,
    steps.map(({ event_id: id, email, input: { dedupe_key, recipient, occurred_at } }) => {
      const { id: email_id, last_event_at } = email;
      return { id, email_id, dedupe_key, recipient, last_event_at, occurred_at };
    }),
  );
  return steps.flatMap((step) => {
    const at = recorded.get(step.event_id);
    return at === undefined ? [] : { ...step, at };
  });
}

/** Updates emails and counts. Of several changes of an email, the first one moves it. */
async function moveEmails(client: Db, { to }: Transition, applied: readonly Step[]): Promise<void> {
  const byEmail = [...groupBy(applied, ({ email }) => email.id).values()].map((steps) => {
    const times = steps.flatMap(({ at }) => at ?? []).sort();
    const first = steps.find(({ at }) => at === times[0]) as Step;
    return { ...first, last_event_at: times.at(-1) };
  });
  const updating = updateEmails(
    client,
    byEmail.map(({ email: { id }, moves, input, last_event_at }) => {
      const { error, bounce_reason, provider, provider_message_id } = input;
      const status = moves && to !== null ? to : undefined;
      return { id, status, error, bounce_reason, provider, provider_message_id, last_event_at };
    }),
  );
  if (to === null) return updating;
  const moved = byEmail.filter(({ moves, email }) => moves && email.status !== to);
  const ofBatches = groupBy(
    moved.filter(({ email }) => email.batch_id !== null),
    ({ email: { batch_id, status } }) => `${batch_id} ${status}`,
  );
  await Promise.all([
    updating,
    countMoved(
      client,
      to,
      moved.map(({ email, input: { bounce_reason = null }, at: moved_at = null }) => ({
        ...email,
        bounce_reason,
        moved_at,
      })),
    ),
    insertBatchMoves(
      client,
      [...ofBatches.values()].map((steps) => {
        const { email } = steps[0] as Step;
        const at =
          steps
            .flatMap(({ last_event_at }) => last_event_at ?? [])
            .sort()
            .at(-1) ?? null;
        return { batch_id: email.batch_id as string, from: email.status, to, members: steps.length, at };
      }),
    ),
  ]);
}

async function recordRecipients(client: Db, { to }: Transition, applied: readonly Step[]): Promise<void> {
  if (to === null) return;
  const reports = applied.flatMap(({ input: { id: email_id, recipient, error, bounce_reason } }) =>
    recipient === undefined ? [] : { email_id, recipient, error, bounce_reason },
  );
  const unique = groupBy(reports, ({ email_id, recipient }) => `${email_id} ${recipient}`);
  await reportRecipients(
    client,
    to,
    [...unique.values()].map(([report]) => report as (typeof reports)[number]),
  );
}

/** The webhook events of a change. */
function webhookEvents(change: EmailChange, applied: readonly Step[]): NewWebhookEvent[] {
  const { event } = TRANSITIONS[change];
  if (event === null) return [];
  return applied.map(({ input, event_id, email: { id: message_id, org_id, status }, at }) => {
    const { recipient, error, bounce_reason: bounceReason, link } = input;
    const data = { status: nextStatus(status, change), recipient, error, bounceReason, click: link && { link } };
    return { event_id, org_id, type: event, created_at: at as string, message_id, data };
  });
}

/** The recipients that a change suppresses. */
function suppressionsOf(change: EmailChange, applied: readonly Step[]): NewSuppression[] {
  const now = Date.now();
  return applied.flatMap(({ input: { recipient, bounce_reason }, email }) => {
    const origin = ORIGINS[change]?.(bounce_reason, email.marketing);
    if (recipient === undefined || origin === undefined) return [];
    const ids = { id: newId('sup', now), event_id: newId('evt', now), org_id: email.org_id, message_id: email.id };
    return { ...ids, email: recipient, origin, ...(bounce_reason && { reason: bounce_reason }) };
  });
}

function publishChange(change: EmailChange, count: number, reasons?: ReadonlyMap<string, number>): void {
  const { event } = TRANSITIONS[change];
  if (event === null || count === 0) return;
  noted.publish({ kind: 'email', event: event.slice('email.'.length), count, ...(reasons && { reasons }) });
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
    const transition: Transition = TRANSITIONS.rescheduled;
    const { steps } = await findSteps(client, transition, [{ id }], orgId);
    const scheduled_at = steps.length === 0 ? undefined : await moveEmail(client, id, scheduledAt);
    if (scheduled_at === undefined) return undefined;
    const applied = await recordEvents(client, transition, steps);
    await Promise.all([
      moveEmails(client, transition, applied),
      insertOutbox(client, 'reschedule', [id]),
      enqueueEvents(
        client,
        webhookEvents('rescheduled', applied).map((event) => ({
          ...event,
          data: { ...event.data, scheduledAt: scheduled_at },
        })),
      ),
    ]);
    afterCommit(client, () => publishChange('rescheduled', 1));
    return scheduled_at;
  });
}
