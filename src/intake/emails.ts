import { parseMailbox } from '../domain/address.ts';
import type { EmailRequest } from '../domain/email.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { parseInstant, SCHEDULE_PROBLEMS } from '../domain/instant.ts';
import { project, projectReschedule } from '../projection/emails.ts';
import { type Acceptance, acceptEmails, type NewEmail, type Refusal, whyUnmoved } from '../store/emails.ts';
import { insertOutbox } from '../store/outbox.ts';
import { type Pool, transaction } from '../store/pool.ts';

/** Whose request it is. */
export interface Caller {
  readonly orgId: string;
  /** The only domains it may send from, or null for every domain of its organization. */
  readonly domainIds: readonly string[] | null;
}

export interface IntakeDeps {
  readonly pool: Pool;
  /** Called after each commit that left something in the outbox. */
  readonly wakeRelay: () => void;
}

/**
 * Stores one email for delivery.
 * @throws ServiceError validation_error for a time out of bounds; domain_not_found, domain_not_verified or
 *   insufficient_scope for its `from`
 */
export async function acceptEmail(deps: IntakeDeps, caller: Caller, request: EmailRequest): Promise<Acceptance> {
  const [acceptance] = await acceptEmails(deps.pool, caller.orgId, caller.domainIds, [newEmail(request)]);
  if (!acceptance) throw new Error('the statement that accepts emails answered nothing');
  if (acceptance.refusal) throw refused(acceptance.refusal, request);
  deps.wakeRelay();
  return acceptance;
}

function newEmail(request: EmailRequest): NewEmail {
  const now = Date.now();
  return {
    ...request,
    scheduled_at: request.scheduled_at === null ? null : instant(request.scheduled_at),
    id: newId('em', now),
    event_id: newId('evt', now),
    batch_id: null,
    from_domain: domainOf(request.from),
  };
}

function domainOf(from: string): string {
  const mailbox = parseMailbox(from);
  if (typeof mailbox === 'string') throw new ServiceError('validation_error', mailbox, 'from');
  return mailbox.domain;
}

function instant(text: string): string {
  const date = parseInstant(text);
  if (!date) throw new ServiceError('validation_error', SCHEDULE_PROBLEMS.form, 'scheduled_at');
  return date.toISOString();
}

function refused(refusal: Refusal, request: EmailRequest): ServiceError {
  const domain = domainOf(request.from);
  switch (refusal) {
    case 'past':
    case 'far':
      return new ServiceError('validation_error', SCHEDULE_PROBLEMS[refusal], 'scheduled_at');
    case 'domain_not_found':
      return new ServiceError(refusal, `the domain ${domain} is not registered on this account`, 'from');
    case 'domain_not_verified':
      return new ServiceError(refusal, `the domain ${domain} is registered but not verified yet`, 'from');
    case 'insufficient_scope':
      return new ServiceError(refusal, `this API key may not send from the domain ${domain}`, 'from');
  }
}

/**
 * Gives a scheduled email another time.
 * @throws ServiceError validation_error, not_found or not_scheduled
 */
export async function rescheduleEmail(
  deps: IntakeDeps,
  orgId: string,
  id: string,
  scheduledAt: string,
): Promise<{ id: string; status: 'scheduled'; scheduled_at: string }> {
  const time = instant(scheduledAt);
  const moved = await projectReschedule(deps.pool, orgId, id, time);
  if (moved === undefined) throw unmoved(await whyUnmoved(deps.pool, orgId, id, time));
  deps.wakeRelay();
  return { id, status: 'scheduled', scheduled_at: moved };
}

/**
 * Calls a scheduled email back; it is never sent once this returns.
 * @throws ServiceError not_found or not_scheduled
 */
export async function cancelEmail(
  deps: IntakeDeps,
  orgId: string,
  id: string,
): Promise<{ id: string; status: 'canceled' }> {
  const canceled = await transaction(deps.pool, async (client) => {
    const changed = await project(client, 'canceled', [{ id }], orgId);
    await insertOutbox(client, 'cancel', changed);
    return changed.length === 1;
  });
  if (!canceled) throw unmoved(await whyUnmoved(deps.pool, orgId, id, null));
  deps.wakeRelay();
  return { id, status: 'canceled' };
}

function unmoved(reason: Awaited<ReturnType<typeof whyUnmoved>>): ServiceError {
  switch (reason) {
    case 'past':
    case 'far':
      return new ServiceError('validation_error', SCHEDULE_PROBLEMS[reason], 'scheduled_at');
    case 'not_found':
      return new ServiceError('not_found', 'there is no email with this id');
    case 'not_scheduled':
      return new ServiceError('not_scheduled', 'only an email that is still scheduled can be moved or canceled');
  }
}
