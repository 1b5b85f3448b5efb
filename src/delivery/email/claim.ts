import { performance } from 'node:perf_hooks';
import type { EmailContent } from '../../domain/email/content.ts';
import { newId } from '../../domain/ids.ts';
import { type OutgoingEmail, type OutgoingFile, toOutgoing } from '../../domain/email/outgoing.ts';
import { UNTRACKED } from '../../domain/email/tracked-links.ts';
import { project } from '../../projection/emails.ts';
import type { EmailProvider } from '../../providers/email-provider.ts';
import {
  type Attempt,
  beginAttempts,
  hasFinalOutcome,
  isAmbiguous,
  lastAttempts,
  type LockedEmail,
  lockEmails,
  SMALL_BODY_BYTES,
} from '../../store/emails/attempts.ts';
import { afterCommit, type CommitWith, type Db, isUnreachable, transaction } from '../../store/postgres/pool.ts';
import { clearSuspects, markSuspects } from '../../store/emails/suspects.ts';
import { claimed } from '../../telemetry/topics.ts';
import { type Claim, type Member, type MemberResult, unclaimableResult } from '../contract.ts';
import type { ClaimedEmail, Copy, EmailDeps, EmailTypes, LargeContents, LargeEmail } from './contract.ts';
import { insertAccountLinks } from './account-links.ts';
import { fail } from './copies.ts';
import { firstOpen, type Gate, judgePaused, makeGate, waitForOrganization } from '../pauses.ts';
import { isQuarantined, quarantine } from './quarantine.ts';
import { chooseRecipients, type OpenedEmail, suppressionOf, toMessage } from './recipients.ts';

/** The result of a member whose files cannot be read now. It uses no attempt, since no provider was called. */
export const UNREADABLE = { state: 'again', reason: 'Its attachments cannot be read now.', alone: true } as const;
/** The result of a member whose content cannot be decrypted because SECRET_KEY has changed since it was accepted. */
const SEALED = {
  state: 'again',
  reason: 'Its content cannot be decrypted: SECRET_KEY is another one.',
  alone: true,
} as const;
/** An email with missing files fails after this time; until then its store may not be mounted. */
const FILES_LOST_AFTER_MS = 24 * 3_600_000;
/**
 * Maximum size of the bodies and files of one provider call. It is far below the 50 MB that Postmark allows, since the whole
 * call is in memory. The copies of a marketing email are sent in several calls if needed.
 */
export const MAX_CALL_BYTES = 16 * 1_048_576;

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
    const emailsOf = (state: Verdict['state']) =>
      judged.flatMap(({ email, verdict }) => (email && verdict.state === state ? [email] : []));
    const due = emailsOf('due');
    const ambiguous = emailsOf('ambiguous');
    await markSuspects(
      client,
      ambiguous.map(({ id }) => id).filter((id) => attempts.get(id)?.outcome === null),
    );
    // An ambiguous email was claimed before, unless a restored backup is older than its claim.
    const scheduled = [...due, ...ambiguous].filter((email) => email.status === 'scheduled');
    await project(
      client,
      'claimed',
      scheduled.map(({ id }) => ({ id })),
    );
    const overdueSeconds = scheduled.map(({ overdueMs }) => overdueMs / 1_000);
    afterCommit(client, () => claimed.publish({ overdueSeconds }));
    const quarantined = await quarantine(deps, client, emailsOf('quarantine'), attempts);
    const assigned = await assign(deps, client, commitWith, due, attempts, contents, gate);
    return [
      ...judged.flatMap(({ verdict }) => (isClaim(verdict) ? verdict : [])),
      ...assigned,
      ...quarantined.map(done),
    ];
  });
}

/** What is done with an email: its claim, or what makes one inside the transaction. */
type Verdict = EmailClaim | { readonly state: 'due' | 'quarantine' };

function isClaim(verdict: Verdict): verdict is EmailClaim {
  return verdict.state !== 'due' && verdict.state !== 'quarantine';
}

/** Decides what is done with one email. The order of the rules matters. */
function judge(
  deps: EmailDeps,
  member: Member,
  email: LockedEmail | undefined,
  attempt: Attempt | undefined,
  contents: LargeContents,
): Verdict {
  const { id } = member;
  if (!email) return done({ id, state: 'ended', status: 'canceled' });
  const blocked = unclaimableResult(email, member);
  if (blocked) return done(blocked);
  const message = attempt && { member, attempt, isCopied: email.copies_left };
  if (message && isUnapplied(email, message.attempt)) return { state: 'unapplied', message };
  const ambiguous = message && isAmbiguous(message.attempt) ? message : undefined;
  if (isQuarantined(deps, email, ambiguous?.attempt)) return { state: 'quarantine' };
  if (ambiguous) return { state: 'ambiguous', message: ambiguous };
  if (email.suspendedForMs !== null) return done({ id, ...waitForOrganization(email.suspendedForMs), postponed: true });
  const content = contents.get(id);
  if (!content && email.is_suspect && deps.isolation) return { state: 'held', message: { needs: 'isolation', member } };
  if (!content && isLarge(email))
    return { state: 'held', message: { needs: 'content', email: toLarge(email, member) } };
  if (content?.files === 'lost' && email.overdueMs < FILES_LOST_AFTER_MS) return done({ id, ...UNREADABLE });
  return { state: 'due' };
}

function done(result: MemberResult): EmailClaim {
  return { state: 'done', result };
}

function isLarge({ attachments, body_bytes, copies }: LockedEmail): boolean {
  return attachments.length > 0 || body_bytes * copies > SMALL_BODY_BYTES;
}

function toLarge({ org_id: orgId, body_bytes, copies, attachments }: LockedEmail, member: Member): LargeEmail {
  const content = body_bytes + attachments.reduce((sum, { size }) => sum + size, 0);
  const ofCopies = copies === 1 ? 0 : Math.min(copies, copiesPerCall(content)) * content;
  return { member, orgId, bytes: content + ofCopies, attachments };
}

/** The number of copies of this size that fit into one call. */
function copiesPerCall(sizeBytes: number): number {
  return Math.max(1, Math.floor(MAX_CALL_BYTES / Math.max(1, sizeBytes)));
}

/** The size of an email, or of each of its copies. */
function sizeBytesOf({ body_bytes }: LockedEmail, { files }: OutgoingEmail): number {
  return files.reduce((sum, { content }) => sum + content.length, body_bytes);
}

/** Returns true if a provider's answer is recorded but not applied. The email must not be sent before that. */
function isUnapplied({ copies_left }: Pick<LockedEmail, 'copies_left'>, attempt: Attempt): boolean {
  return attempt.changes !== null || (!copies_left && hasFinalOutcome(attempt));
}

/** Returns the email for the provider, or an error: an email accepted weeks ago may violate a rule added since. */
function buildOutgoing(
  email: LockedEmail,
  content: EmailContent,
  files: readonly OutgoingFile[] | 'lost' = [],
): OutgoingEmail | string {
  try {
    if (files === 'lost') return 'This email cannot be sent: its attachments are lost.';
    return toOutgoing(email, content, files);
  } catch (error) {
    return `This email cannot be sent: ${(error as Error).message}.`;
  }
}

/** @returns undefined if it cannot be decrypted; the operator can fix that, so the email does not fail */
async function openContent(deps: EmailDeps, client: Db, email: LockedEmail): Promise<EmailContent | undefined> {
  try {
    return await deps.contents.open(client, email);
  } catch (error) {
    if (isUnreachable(error)) throw error;
    deps.log.error({ err: error, email: email.id, org: email.org_id }, 'could not decrypt email content');
    return undefined;
  }
}

/**
 * Chooses for each email the first provider that can deliver it and whose account is not paused, and records an attempt.
 * Emails that no provider can deliver fail. Emails whose providers are all paused wait without an attempt. Ends the transaction.
 */
async function assign(
  deps: EmailDeps,
  client: Db,
  commitWith: CommitWith,
  emails: readonly LockedEmail[],
  attempts: ReadonlyMap<string, Attempt>,
  contents: LargeContents,
  gate: Gate,
): Promise<EmailClaim[]> {
  const failed: { id: string; error: string }[] = [];
  const sealed: MemberResult[] = [];
  const opened: OpenedEmail[] = [];
  for (const email of emails) {
    const large = contents.get(email.id);
    const content = await openContent(deps, client, large ? { ...email, ...large } : email);
    if (!content) {
      sealed.push({ id: email.id, ...SEALED });
      continue;
    }
    const outgoing = buildOutgoing(email, content, large?.files);
    if (typeof outgoing === 'string') failed.push({ id: email.id, error: outgoing });
    else opened.push({ email, outgoing, wasAttempted: attempts.has(email.id) });
  }
  const { emails: read, unreadable } = await insertAccountLinks(deps, client, opened);
  failed.push(...unreadable.map((id) => ({ id, error: 'This email cannot be sent: its link cannot be decrypted.' })));
  const [domainOf, isSuppressed] = await Promise.all([
    deps.sendingDomains(client, read),
    suppressionOf(deps, client, read),
  ]);
  const readables = read.flatMap((each) => {
    const domain = domainOf(each);
    if (typeof domain === 'string') {
      failed.push({ id: each.email.id, error: domain });
      return [];
    }
    const { email, outgoing, wasAttempted } = each;
    const ofDomain = { dkim: domain.signer, tracking: trackingOf(outgoing, domain.tracking) };
    return { email, outgoing: Object.assign({}, outgoing, ofDomain), wasAttempted };
  });
  const { sendable, ended } = await chooseRecipients(deps, client, readables, isSuppressed);

  const callOf = makeCalls();
  const claimedAt = performance.now();
  const claimedAtUnixMs = Date.now();
  const ready: ClaimedEmail[] = [];
  const waiting: MemberResult[] = [];
  for (const { email, outgoing, copies: left } of sendable) {
    const bytes = sizeBytesOf(email, outgoing);
    const candidates = left.slice(0, copiesPerCall(bytes));
    const refusals = deps.providers.map((provider) => refusal(provider, candidates));
    const able = deps.providers.filter((_, index) => refusals[index] === undefined);
    if (able.length === 0) {
      failed.push({ id: email.id, error: `No provider can deliver this email. ${refusals.join(' ')}` });
      continue;
    }
    const chosen = await firstOpen(gate, client, able, outgoing);
    if ('pause' in chosen) {
      const { id, overdueMs } = email;
      const waitedMs = attempts.get(id)?.accountRefusedForMs ?? Math.min(overdueMs, chosen.pause.ageMs);
      const paused = judgePaused(chosen.pause, waitedMs, deps.accountRetryForMs);
      if (paused.kind === 'fail') failed.push({ id, error: paused.error });
      else waiting.push({ id, state: 'again', reason: chosen.pause.reason, afterMs: paused.afterMs, postponed: true });
      continue;
    }
    const { provider } = chosen;
    const n = (attempts.get(email.id)?.n ?? 0) + 1;
    const copies = candidates.slice(0, provider.callSize);
    const call = callOf(provider, provider.streamOf?.(outgoing), copies.length, copies.length * bytes);
    ready.push({
      id: email.id,
      copies,
      orgId: email.org_id,
      provider,
      n,
      call,
      claimedAt,
      claimedAtUnixMs,
      overdueMs: email.overdueMs,
    });
  }
  for (const [id, status] of await fail(client, failed)) ended.push({ id, state: 'ended', status });
  await commitWith(
    Promise.all([
      beginAttempts(
        client,
        ready.map(({ id, n, call, provider }) => ({ message_id: id, n, call, provider: provider.name })),
      ),
      // The attempts show which emails may have ended a worker, as `suspected_at` did before.
      clearSuspects(
        client,
        ready.filter(({ id }) => contents.has(id)).map(({ id }) => id),
      ),
    ]),
  );
  return [
    ...ready.map((message): EmailClaim => ({ state: 'ready', message })),
    ...[...ended, ...sealed, ...waiting].map(done),
  ];
}

/** An email with the link of an account is not tracked, whatever its domain has on. */
function trackingOf({ isTracked }: OutgoingEmail, ofDomain: OutgoingEmail['tracking']): OutgoingEmail['tracking'] {
  return isTracked ? ofDomain : UNTRACKED;
}

function refusal(provider: EmailProvider, copies: readonly Copy[]): string | undefined {
  for (const copy of copies) {
    const refused = provider.refusal(toMessage(copy));
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/**
 * Assigns emails to calls: each call has emails of one stream, and at most as many emails and bytes as its provider
 * accepts.
 */
function makeCalls(): (provider: EmailProvider, stream: string | undefined, copies: number, bytes: number) => string {
  const open = new Map<string, { call: string; copiesLeft: number; bytesLeft: number }>();
  return (provider, stream, copies, bytes) => {
    const key = `${provider.name} ${stream ?? ''}`;
    const last = open.get(key);
    const current =
      last && copies <= last.copiesLeft && bytes <= last.bytesLeft
        ? last
        : { call: newId('call', Date.now()), copiesLeft: provider.callSize, bytesLeft: MAX_CALL_BYTES };
    current.copiesLeft -= copies;
    current.bytesLeft -= bytes;
    open.set(key, current);
    return current.call;
  };
}
