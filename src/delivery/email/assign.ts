import { performance } from 'node:perf_hooks';
import type { EmailContent } from '../../domain/email/content.ts';
import { newId } from '../../lib/ids.ts';
import { envelopeOf, isPart, type OutgoingEmail, type OutgoingFile, toOutgoing } from '../../domain/email/outgoing.ts';
import { UNTRACKED } from '../../domain/email/tracked-links.ts';
import type { EmailProvider } from '../../providers/email-provider.ts';
import { type Attempt, beginAttempts, type LockedEmail } from '../../store/emails/attempts.ts';
import { type CommitWith, type Db, isUnreachable } from '../../store/postgres/pool.ts';
import { beginCopies, type Recipient } from '../../store/emails/recipients.ts';
import { clearSuspects } from '../../store/emails/suspects.ts';
import { NO_CONNECTION } from '../call.ts';
import { type Failure, type MemberResult, postponed, uncalled } from '../contract.ts';
import type { ClaimedEmail, Copy, EmailDeps, LargeContents } from './contract.ts';
import { insertAccountLinks } from './account-links.ts';
import { fail } from './copies.ts';
import { firstUnpaused, type Gate, judgePaused } from '../pauses.ts';
import { chooseRecipients, type OpenedEmail, type Sendable, suppressionOf, toMessage } from './recipients.ts';

/** The result of a member whose content cannot be decrypted because SECRET_KEY has changed since it was accepted. */
const UNDECRYPTABLE_RESULT = {
  state: 'again',
  reason: 'Its content cannot be decrypted: SECRET_KEY has changed since it was accepted.',
  alone: true,
} as const;
/**
 * Maximum size of the bodies and files of one provider call. It is far below the 50 MB that Postmark allows, since the whole
 * call is in memory. The copies of a marketing email are sent in several calls if needed.
 */
export const MAX_CALL_BYTES = 16 * 1_048_576;

/** Returns the number of copies of this size that fit into one call. */
export function copiesPerCall(sizeBytes: number): number {
  return Math.max(1, Math.floor(MAX_CALL_BYTES / Math.max(1, sizeBytes)));
}

/** Returns the size of an email, or of each of its copies. */
function sizeBytesOf({ body_bytes }: LockedEmail, { files }: OutgoingEmail): number {
  return files.reduce((sum, { content }) => sum + content.length, body_bytes);
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

/** The transaction that claims emails, and what it has read before it assigns them to providers. */
interface ClaimTransaction {
  readonly client: Db;
  readonly commitWith: CommitWith;
  /** The last attempts of the emails. */
  readonly attempts: ReadonlyMap<string, Attempt>;
  readonly contents: LargeContents;
  readonly gate: Gate;
}

/** Emails with their decrypted content, and the results of the others. */
interface Opening {
  readonly opened: readonly OpenedEmail[];
  readonly failed: Failure[];
  readonly waiting: MemberResult[];
}

/** Decrypts emails and builds them for the provider. */
async function openEmails(
  deps: EmailDeps,
  { client, attempts, contents }: ClaimTransaction,
  emails: readonly LockedEmail[],
): Promise<Opening> {
  const built: OpenedEmail[] = [];
  const failed: Failure[] = [];
  const waiting: MemberResult[] = [];
  for (const email of emails) {
    const { id } = email;
    const large = contents.get(id);
    const content = await openContent(deps, client, large ? { ...email, ...large } : email);
    if (!content) {
      waiting.push({ id, ...UNDECRYPTABLE_RESULT });
      continue;
    }
    const outgoing = buildOutgoing(email, content, large?.files);
    if (typeof outgoing === 'string') failed.push({ id, error: outgoing });
    else built.push({ email, outgoing, attempt: attempts.get(id) });
  }
  const { emails: opened, failed: withoutLink } = await insertAccountLinks(deps, client, built);
  failed.push(...withoutLink);
  return { opened, failed, waiting };
}

type ProviderChoice =
  | {
      readonly kind: 'send';
      readonly provider: EmailProvider;
      readonly copies: readonly Copy[];
      readonly bytes: number;
    }
  | { readonly kind: 'wait'; readonly reason: string; readonly afterMs: number }
  | { readonly kind: 'fail'; readonly error: string };

/** Chooses the first provider that can deliver an email and whose account is not paused, and the copies of its next call. */
async function chooseProvider(
  deps: EmailDeps,
  { client, attempts, gate }: ClaimTransaction,
  { email, outgoing, copies }: Sendable,
): Promise<ProviderChoice> {
  const sizeBytes = sizeBytesOf(email, outgoing);
  const candidates = copies.slice(0, copiesPerCall(sizeBytes));
  const refusals = deps.providers.map((provider) => refusal(provider, candidates));
  const able = deps.providers.filter((_, index) => refusals[index] === undefined);
  if (able.length === 0) return { kind: 'fail', error: `No provider can deliver this email. ${refusals.join(' ')}` };
  const attempt = attempts.get(email.id);
  const open = await firstUnpaused(gate, client, able, outgoing, email.org_id, attempt);
  if ('pause' in open) {
    const { pause } = open;
    const verdict = judgePaused(pause, attempt, email.overdueMs, deps.accountRetryForMs);
    return verdict.kind === 'fail' ? verdict : { ...verdict, reason: pause.reason };
  }
  const { provider } = open;
  const stalledForMs = deps.line.stalledForMs({ provider, orgId: email.org_id });
  if (stalledForMs > 0) {
    const { detail, afterMs } = uncalled(NO_CONNECTION, stalledForMs);
    return { kind: 'wait', reason: detail, afterMs };
  }
  const inCall = candidates.slice(0, provider.callSize);
  return { kind: 'send', provider, copies: inCall, bytes: inCall.length * sizeBytes };
}

/** The emails that a provider call may contain now, and the results of the others. */
interface Assignment {
  readonly ready: readonly ClaimedEmail[];
  readonly results: readonly MemberResult[];
}

/**
 * Assigns emails to providers and records their attempts. Emails that no provider can deliver fail. Emails whose providers are
 * all paused wait without an attempt. Ends the transaction.
 */
export async function assign(
  deps: EmailDeps,
  claim: ClaimTransaction,
  emails: readonly LockedEmail[],
): Promise<Assignment> {
  const { client, commitWith, attempts, contents } = claim;
  const { opened, failed, waiting } = await openEmails(deps, claim, emails);
  const [decide, isSuppressed] = await Promise.all([
    deps.sendingDomains(client, opened),
    suppressionOf(deps, client, opened),
  ]);
  const permitted = opened.flatMap((each): OpenedEmail[] => {
    const decision = decide(each);
    if (typeof decision === 'string') {
      failed.push({ id: each.email.id, error: decision });
      return [];
    }
    const { email, outgoing, attempt } = each;
    const ofDomain = { dkim: decision.signer, tracking: trackingOf(outgoing, decision.tracking) };
    return [{ email, outgoing: Object.assign({}, outgoing, ofDomain), attempt }];
  });
  const { sendable, ended } = await chooseRecipients(deps, client, permitted, isSuppressed);

  const assignCall = makeCallAssigner();
  const claimedAt = performance.now();
  const claimedAtUnixMs = Date.now();
  const ready: ClaimedEmail[] = [];
  for (const each of sendable) {
    const { id, org_id: orgId, overdueMs } = each.email;
    const choice = await chooseProvider(deps, claim, each);
    if (choice.kind === 'fail') {
      failed.push({ id, error: choice.error });
    } else if (choice.kind === 'wait') {
      waiting.push(postponed(id, choice.reason, choice.afterMs));
    } else {
      const { provider, copies, bytes } = choice;
      const call = assignCall(provider, provider.streamOf?.(each.outgoing), copies.length, bytes);
      const attempt = attempts.get(id);
      const [n, failures] = [(attempt?.n ?? 0) + 1, attempt?.failures ?? 0];
      ready.push({ id, copies, orgId, provider, n, failures, call, claimedAt, claimedAtUnixMs, overdueMs });
    }
  }
  for (const [id, status] of await fail(client, failed)) ended.push({ id, state: 'ended', status });
  // From this commit on, attempts without an outcome replace `suspected_at` as the marks of possible crashes. Emails that wait did
  // not crash this worker when they were read. In the isolated process (without `isolation`), they stay suspects until sent.
  const unsuspected = deps.isolation ? emails : ready;
  await commitWith(
    Promise.all([
      beginAttempts(
        client,
        ready.map(({ id, n, call, provider: { name, awaitsHandOver } }) => {
          return { message_id: id, n, call, provider: name, handedOver: awaitsHandOver ? false : null };
        }),
        deps.recorder.worker,
      ),
      beginCopies(client, ready.flatMap(copiesOfCall)),
      clearSuspects(
        client,
        unsuspected.map(({ id }) => id).filter((id) => contents.has(id)),
      ),
    ]),
  );
  return { ready, results: [...ended, ...waiting] };
}

function copiesOfCall({ id, call, copies }: ClaimedEmail): (Recipient & { readonly call: string })[] {
  return copies
    .filter(isPart)
    .flatMap((copy) =>
      envelopeOf(copy).map(({ address }) => ({ email_id: id, recipient: address.toLowerCase(), call })),
    );
}

/** Disables tracking for an email with the link of an account, regardless of its domain. */
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
 * Returns a function that assigns an email to a provider call and returns the id of the call. A call contains emails of one
 * stream, at most as many copies as its provider accepts, and at most MAX_CALL_BYTES.
 */
function makeCallAssigner(): (
  provider: EmailProvider,
  stream: string | undefined,
  copies: number,
  bytes: number,
) => string {
  const open = new Map<string, { call: string; copiesLeft: number; bytesLeft: number }>();
  return (provider, stream, copies, bytes) => {
    const key = `${provider.name} ${stream ?? ''}`;
    const last = open.get(key);
    const current =
      last && copies <= last.copiesLeft && bytes <= last.bytesLeft
        ? last
        : { call: newId('call'), copiesLeft: provider.callSize, bytesLeft: MAX_CALL_BYTES };
    current.copiesLeft -= copies;
    current.bytesLeft -= bytes;
    open.set(key, current);
    return current.call;
  };
}
