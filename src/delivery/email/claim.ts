import { isReported } from '../../domain/email/states.ts';
import { project } from '../../projection/emails.ts';
import {
  type Attempt,
  hasFinalOutcome,
  isAmbiguous,
  lastAttempts,
  type LockedEmail,
  lockEmails,
  SMALL_BODY_BYTES,
} from '../../store/emails/attempts.ts';
import { afterCommit, transaction } from '../../store/postgres/pool.ts';
import { markSuspects } from '../../store/emails/suspects.ts';
import { messagesClaimed } from '../../telemetry/topics.ts';
import { type Claim, done, isDeliveredBy, type Member, suspendedResult, unclaimableResult } from '../contract.ts';
import type { EmailDeps, EmailTypes, LargeContents, LargeEmail } from './contract.ts';
import { assign, copiesPerCall } from './assign.ts';
import { makeGate } from '../pauses.ts';
import { isQuarantined, quarantine } from './quarantine.ts';

/** The result of a member whose files cannot be read now. It uses no attempt, since no provider was called. */
export const UNREADABLE_RESULT = {
  state: 'again',
  reason: 'Its attachments cannot be read now.',
  alone: true,
} as const;
/** An email with missing files fails after this time; until then the operator can restore them. */
const FILES_LOST_AFTER_MS = 24 * 3_600_000;
type EmailClaim = Claim<EmailTypes>;

/**
 * Claims the members that may be sent now and classifies the others. After the commit their attempts are recorded, and
 * reschedule and cancel return 422.
 * @param contents the content of large emails, which was read before
 */
export async function claim(
  deps: EmailDeps,
  members: readonly Member[],
  contents: LargeContents,
): Promise<EmailClaim[]> {
  const ids = members.map((member) => member.id);
  const gate = makeGate(await deps.pauses.current());
  return transaction(deps.pool, async (client, commitWith) => {
    const [locked, last] = await Promise.all([lockEmails(client, ids), lastAttempts(client, ids)]);
    const emails = new Map(locked.map((email) => [email.id, email]));
    const attempts = new Map(last.map((attempt) => [attempt.message_id, attempt]));
    const judged = members.map((member) => {
      const email = emails.get(member.id);
      return { email, verdict: judge(deps, member, email, attempts.get(member.id), contents) };
    });
    const emailsOf = (kind: Verdict['kind']) =>
      judged.flatMap(({ email, verdict }) => (email && verdict.kind === kind ? [email] : []));
    const due = emailsOf('due');
    const ambiguous = emailsOf('ambiguous');
    const open = ambiguous.flatMap(({ id }) => attempts.get(id) ?? []).filter(({ outcome }) => outcome === null);
    await markSuspects(
      client,
      open.map(({ message_id }) => message_id),
      open.map(({ worker }) => worker),
    );
    // An email with an attempt was claimed before, unless a restored backup or a fail-over has forgotten its claim.
    const scheduled = [...due, ...ambiguous, ...emailsOf('unapplied')].filter((email) => email.status === 'scheduled');
    await project(
      client,
      'claimed',
      scheduled.map(({ id }) => ({ id })),
    );
    const overdueSeconds = scheduled.map(({ overdueMs }) => overdueMs / 1_000);
    afterCommit(client, () => messagesClaimed.publish({ kind: 'email', overdueSeconds }));
    const quarantined = await quarantine(deps, client, emailsOf('quarantine'), attempts);
    const assigned = await assign(deps, { client, commitWith, attempts, contents, gate }, due);
    return [
      ...judged.flatMap(({ verdict }) => (isClaim(verdict) ? verdict : [])),
      ...assigned.ready.map((message): EmailClaim => ({ kind: 'ready', message })),
      ...[...assigned.results, ...quarantined].map(done),
    ];
  });
}

/** The decision for an email: its claim, or the step that creates one inside the transaction. */
type Verdict = EmailClaim | { readonly kind: 'due' | 'quarantine' };

function isClaim(verdict: Verdict): verdict is EmailClaim {
  return verdict.kind !== 'due' && verdict.kind !== 'quarantine';
}

/** Decides how one email is handled. The order of the rules matters. */
function judge(
  deps: EmailDeps,
  member: Member,
  email: LockedEmail | undefined,
  attempt: Attempt | undefined,
  contents: LargeContents,
): Verdict {
  const { id } = member;
  if (!email) return done({ id, state: 'ended', status: 'canceled' });
  const message = attempt && { member, attempt, hasCopiesLeft: email.copies_left };
  // A report may have ended the email before the provider's answer was applied, so this comes before the status.
  if (message && isDeliveredBy(email, member) && isUnapplied(email, message.attempt))
    return { kind: 'unapplied', message };
  const ambiguous = message && isAmbiguous(message.attempt) ? message : undefined;
  const isLookedUp = ambiguous !== undefined && canBeLookedUp(deps, ambiguous.attempt);
  const blocked = unclaimableResult(email, member);
  // Unlike a report, a look-up restores what the lost answer would have recorded: the event `sent`, the provider and its id.
  const isOvertaken = isLookedUp && isReported(email.status) && isDeliveredBy(email, member);
  if (blocked && !isOvertaken) return done(blocked);
  if (isQuarantined(email, isLookedUp)) return { kind: 'quarantine' };
  if (ambiguous) return { kind: 'ambiguous', message: ambiguous };
  if (email.suspendedForMs !== null) return done(suspendedResult(id, email.suspendedForMs));
  const content = contents.get(id);
  if (!content && email.is_suspect && deps.isolation) return { kind: 'held', message: { kind: 'isolation', member } };
  if (!content && isLarge(email)) return { kind: 'held', message: { kind: 'content', email: toLarge(email, member) } };
  if (content?.files === 'lost' && email.overdueMs < FILES_LOST_AFTER_MS) return done({ id, ...UNREADABLE_RESULT });
  return { kind: 'due' };
}

/** Returns true if the provider of an attempt can be asked about it. */
export function canBeLookedUp({ providers }: Pick<EmailDeps, 'providers'>, { provider }: Attempt): boolean {
  return providers.some((each) => each.name === provider && each.find !== undefined);
}

function isLarge({ attachments, body_bytes, copies }: LockedEmail): boolean {
  return attachments.length > 0 || body_bytes * copies > SMALL_BODY_BYTES;
}

function toLarge({ org_id: orgId, body_bytes, copies, attachments }: LockedEmail, member: Member): LargeEmail {
  const content = body_bytes + attachments.reduce((sum, { size }) => sum + size, 0);
  const ofCopies = copies === 1 ? 0 : Math.min(copies, copiesPerCall(content)) * content;
  return { member, orgId, bytes: content + ofCopies, attachments };
}

/** Returns true if a provider's answer is recorded but not applied. The email must not be sent before that. */
function isUnapplied(
  { copies_left, status, provider }: Pick<LockedEmail, 'copies_left' | 'status' | 'provider'>,
  attempt: Attempt,
): boolean {
  if (attempt.changes !== null) return true;
  if (copies_left || !hasFinalOutcome(attempt)) return false;
  // A report changes the status but does not set the provider.
  const isMissing = attempt.provider_message_id !== null && provider === null;
  return status === 'queued' || status === 'scheduled' || isMissing;
}
