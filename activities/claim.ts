import { performance } from 'node:perf_hooks';
import type { Attachment } from '../src/domain/attachments.ts';
import type { EmailContent } from '../src/domain/email-content.ts';
import { newId } from '../src/domain/ids.ts';
import { type OutgoingEmail, toOutgoing } from '../src/domain/outgoing.ts';
import { project } from '../src/projection/emails.ts';
import type { EmailProvider } from '../src/providers/email-provider.ts';
import { type Attempt, beginAttempts, lastAttempts, type LockedEmail, lockEmails } from '../src/store/attempts.ts';
import { afterCommit, type Db, isUnreachable, transaction } from '../src/store/pool.ts';
import { claimed } from '../src/telemetry/topics.ts';
import type { EmailDeps, Member, MemberResult } from './contract.ts';
import { fail } from './copies.ts';
import type { FilesOfEmails } from './files.ts';
import { chooseRecipients } from './recipients.ts';

/** What a member comes to whose files cannot be read now. It costs no attempt: the fault is ours. */
export const UNREADABLE = { state: 'again', reason: 'Its attachments cannot be read now.', alone: true } as const;
/** What a member comes to whose content this process cannot decrypt: SECRET_KEY is another one than when it was accepted. */
const SEALED = {
  state: 'again',
  reason: 'Its content cannot be decrypted: SECRET_KEY is another one.',
  alone: true,
} as const;
/** Milliseconds for which files that are not there may turn up: a store may be mounted wrongly, or not at all. */
const LOST_AFTER = 24 * 3_600_000;

/** An email that nobody else may send now, with its attempt written down. */
export interface ClaimedEmail {
  readonly id: string;
  /** Itself, or the copies of a marketing email; at least one. */
  readonly copies: readonly OutgoingEmail[];
  readonly orgId: string;
  readonly provider: EmailProvider;
  readonly n: number;
  readonly call: string;
  /** Of the monotonic clock, in milliseconds. */
  readonly claimedAt: number;
  /** Milliseconds for which it had been due by then. */
  readonly late: number;
}

/** An email whose last attempt has no certain outcome: its provider must be asked before it is sent again. */
export interface UnsettledEmail {
  readonly member: Member;
  readonly attempt: Attempt;
  /** Whether it goes out in copies, some of which are still to be sent. */
  readonly isCopied: boolean;
}

/** An email with files that nobody has read yet. */
export interface UnreadEmail {
  readonly member: Member;
  readonly attachments: readonly Attachment[];
}

export interface Claims {
  readonly ready: readonly ClaimedEmail[];
  readonly unsettled: readonly UnsettledEmail[];
  /** Left as they are: their files must be read first. */
  readonly unread: readonly UnreadEmail[];
  readonly results: readonly MemberResult[];
}

/**
 * Sorts members into those that may be sent now, those of unknown outcome and those with nothing to do, and takes the
 * first for us: from the commit on, reschedule and cancel come too late and the attempts are on record.
 * @param files what was read for those that have files
 */
export async function claim(deps: EmailDeps, members: readonly Member[], files: FilesOfEmails): Promise<Claims> {
  if (members.length === 0) return { ready: [], unsettled: [], unread: [], results: [] };
  const ids = members.map((member) => member.id);
  return transaction(deps.pool, async (client) => {
    const emails = new Map((await lockEmails(client, ids)).map((email) => [email.id, email]));
    const attempts = new Map((await lastAttempts(client, ids)).map((attempt) => [attempt.message_id, attempt]));
    const results: MemberResult[] = [];
    const unsettled: UnsettledEmail[] = [];
    const unread: UnreadEmail[] = [];
    const due: LockedEmail[] = [];
    const doubtful: LockedEmail[] = [];
    for (const member of members) {
      const email = emails.get(member.id);
      const attempt = attempts.get(member.id);
      const standing = email && standsInTheWay(email, member);
      if (!email) results.push({ id: member.id, state: 'ended', status: 'canceled' });
      else if (standing) results.push(standing);
      else if (email.attachments.length > 0 && !files.has(email.id))
        unread.push({ member, attachments: email.attachments });
      else if (files.get(email.id) === 'lost' && email.late < LOST_AFTER)
        results.push({ id: member.id, ...UNREADABLE });
      else if (attempt && isUnsettled(attempt)) {
        unsettled.push({ member, attempt, isCopied: email.copies_left });
        doubtful.push(email);
      } else due.push(email);
    }
    // One that is doubtful was claimed before, except where a backup took that back.
    const scheduled = [...due, ...doubtful].filter((email) => email.status === 'scheduled');
    await project(
      client,
      'claimed',
      scheduled.map(({ id }) => ({ id })),
    );
    const lateness = scheduled.map(({ late }) => late / 1_000);
    afterCommit(client, () => claimed.tell({ lateness }));
    const { ready, ended } = await assign(deps, client, due, attempts, files);
    return { ready, unsettled, unread, results: [...results, ...ended] };
  });
}

/** Nobody saw the end of it: its worker died, or the provider left us without an answer. */
export function isUnsettled(attempt: Attempt): boolean {
  return attempt.outcome === null || attempt.outcome === 'unknown';
}

/** Why an email is not ours to send now, if so. */
function standsInTheWay(email: LockedEmail, { id, version, carrier }: Member): MemberResult | undefined {
  const { status, schedule_version, scheduled_at, due_in, provider, workflow_id, copies_left } = email;
  // Another workflow carries it now.
  if (workflow_id !== (carrier ?? id)) return { id, state: 'ended', status };
  if (status === 'scheduled') {
    if (schedule_version === version && due_in === 0) return undefined;
    return { id, state: 'waiting', version: schedule_version, dueAt: scheduled_at as string, inMs: due_in };
  }
  // Claimed before at another version: by another run of its workflow.
  if ((status === 'queued' || copies_left) && schedule_version === version) return undefined;
  return { id, state: 'ended', status, ...(provider !== null && { provider }) };
}

/** An email as a provider gets it, or why it cannot be one: what was accepted weeks ago may break a rule of today. */
function readable(email: LockedEmail, content: EmailContent, files: FilesOfEmails): OutgoingEmail | string {
  try {
    const read = files.get(email.id);
    if (read === 'lost') return 'This email cannot be sent: its attachments are lost.';
    return toOutgoing({ ...email, ...content }, read);
  } catch (error) {
    return `This email cannot be sent: ${(error as Error).message}.`;
  }
}

/** Undefined when it cannot be decrypted; the operator can help, so the email does not fail. */
async function openContent(deps: EmailDeps, client: Db, email: LockedEmail): Promise<EmailContent | undefined> {
  try {
    return await deps.contents.open(client, email);
  } catch (error) {
    if (isUnreachable(error)) throw error;
    deps.log.error({ err: error, email: email.id, org: email.org_id }, 'the content of an email cannot be decrypted');
    return undefined;
  }
}

/** Gives each email the first provider that can carry it and writes its attempt down; fails those that none can. */
async function assign(
  deps: EmailDeps,
  client: Db,
  emails: readonly LockedEmail[],
  attempts: ReadonlyMap<string, Attempt>,
  files: FilesOfEmails,
): Promise<{ ready: ClaimedEmail[]; ended: MemberResult[] }> {
  const failed: { id: string; error: string }[] = [];
  const sealed: MemberResult[] = [];
  const read: { email: LockedEmail; outgoing: OutgoingEmail; tried: boolean }[] = [];
  for (const email of emails) {
    const content = await openContent(deps, client, email);
    if (!content) {
      sealed.push({ id: email.id, ...SEALED });
      continue;
    }
    const outgoing = readable(email, content, files);
    if (typeof outgoing === 'string') failed.push({ id: email.id, error: outgoing });
    else read.push({ email, outgoing, tried: attempts.has(email.id) });
  }
  const domainOf = await deps.sendingDomains(client, read);
  const readables = read.flatMap((each) => {
    const domain = domainOf(each);
    if (typeof domain !== 'string') return { ...each, outgoing: { ...each.outgoing, dkim: domain.signer } };
    failed.push({ id: each.email.id, error: domain });
    return [];
  });
  const { sendable, ended } = await chooseRecipients(deps, client, readables);

  const callOf = makeCalls();
  const claimedAt = performance.now();
  const ready: ClaimedEmail[] = [];
  for (const { email, copies } of sendable) {
    const refusals = deps.providers.map((provider) => refusal(provider, copies));
    const provider = deps.providers.find((_, index) => refusals[index] === undefined);
    if (!provider) {
      failed.push({ id: email.id, error: `No provider can carry this email. ${refusals.join(' ')}` });
      continue;
    }
    const n = (attempts.get(email.id)?.n ?? 0) + 1;
    const call = callOf(provider, copies.length);
    ready.push({ id: email.id, copies, orgId: email.org_id, provider, n, call, claimedAt, late: email.late });
  }
  await beginAttempts(
    client,
    ready.map(({ id, n, call, provider }) => ({ message_id: id, n, call, provider: provider.name })),
  );
  for (const [id, status] of await fail(client, failed)) ended.push({ id, state: 'ended', status });
  return { ready, ended: [...ended, ...sealed] };
}

function refusal(provider: EmailProvider, copies: readonly OutgoingEmail[]): string | undefined {
  for (const copy of copies) {
    const refused = provider.refusal(copy);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** Names the calls of a claim, each of at most as many emails as its provider takes at a time, or the copies of one. */
function makeCalls(): (provider: EmailProvider, copies: number) => string {
  const open = new Map<EmailProvider, { call: string; room: number }>();
  return (provider, copies) => {
    const last = open.get(provider);
    const place = last && last.room >= copies ? last : { call: newId('call', Date.now()), room: provider.callSize };
    place.room -= copies;
    open.set(provider, place);
    return place.call;
  };
}
