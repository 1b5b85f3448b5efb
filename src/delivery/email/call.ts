import { maskAddresses } from '../../lib/mask.ts';
import { storableText } from '../../lib/text.ts';
import type { SendOutcome } from '../../domain/email/retry.ts';
import { awaitAll } from '../../lib/await-all.ts';
import { CLAIM_EXPIRED, isClaimExpired, NO_CONNECTION } from '../call.ts';
import { uncalled } from '../contract.ts';
import { type AccountAnswer, hangingAnswer, sendersOf } from '../pauses.ts';
import type { AnsweredEmail, ClaimedEmail, EmailDeps, EmailOutcomes } from './contract.ts';
import { toMessage } from './recipients.ts';
import { endingOf, outcomeOf } from './record.ts';

/** Derives the state of our account from an email's outcome. Other messages may fail with the reason, so addresses are masked. */
function accountAnswerOf({ email, outcomes }: EmailOutcomes): AccountAnswer[] {
  const outcome = outcomeOf(outcomes);
  const { provider, copies, orgId } = email;
  const senders = copies[0] && sendersOf(provider, copies[0], orgId);
  const answer = { provider: provider.name, senders: Object.values(senders ?? {}) };
  if (outcome.kind === 'sent') return [answer];
  if (outcome.kind !== 'account') return [];
  const sender = (outcome.scope && senders?.[outcome.scope]) ?? '';
  return [{ ...answer, refusal: { reason: maskAddresses(outcome.detail), sender } }];
}

/**
 * Sends emails in one provider call. Emails that got no connection in time, or whose claim has expired before, are `postponed`.
 * @param onAnswer called for each email once the outcomes of all its copies are known
 * @param onLate called for each email once only late copies of it are unanswered
 */
export async function callProvider(
  { track, line, pauses, recorder }: Pick<EmailDeps, 'track' | 'line' | 'pauses' | 'recorder'>,
  emails: readonly ClaimedEmail[],
  onAnswer: (answer: AnsweredEmail) => void,
  onLate: (email: ClaimedEmail) => void,
): Promise<void> {
  const [first] = emails as [ClaimedEmail];
  const { provider, call } = first;
  const copies = emails.flatMap((email) => email.copies.map((copy) => ({ email, copy })));
  const answers = collectAnswers(emails, onAnswer, onLate);

  /** The copies of an email share an attempt, whose first message counts. */
  const handOvers = new Map<ClaimedEmail, Promise<void>>();
  const handOver = (position: number): Promise<void> => {
    const { email } = copies[position] as (typeof copies)[number];
    const recorded = handOvers.get(email) ?? recorder.handOver({ message_id: email.id, n: email.n });
    handOvers.set(email, recorded);
    return recorded;
  };

  /** Sends the copies at these positions on one connection. */
  async function send(positions: readonly number[], orgId: string | undefined): Promise<void> {
    const slow = {
      onLate: (): void => positions.forEach(answers.markLate),
      onHanging: (): void => void pauses.record([hangingAnswer(provider.name, orgId ?? '')]),
    };
    const isSingle = !provider.connections || copies.length === 1;
    const outcomes = await line.run({ provider, orgId, isSingle, ...(provider.connections && slow) }, async () => {
      if (isClaimExpired(first)) return positions.map(() => uncalled(CLAIM_EXPIRED));
      const messages = positions.map((position) => {
        const { copy } = copies[position] as (typeof copies)[number];
        return provider.hasTracking ? toMessage(copy) : track(toMessage(copy), copy.recipient);
      });
      const onOutcome = (index: number, outcome: SendOutcome): void => answers.add(positions[index] as number, outcome);
      return provider.send(messages, call, onOutcome, (index) => handOver(positions[index] as number));
    });
    const postponed = () => uncalled(NO_CONNECTION, line.stalledForMs({ provider, orgId }));
    positions.forEach((position, index) => answers.add(position, outcomes?.[index] ?? postponed()));
  }

  if (provider.connections) {
    await awaitAll(copies.map(({ email }, position) => send([position], email.orgId)));
  } else {
    const isShared = emails.some(({ orgId }) => orgId !== first.orgId);
    await send([...copies.keys()], isShared ? undefined : first.orgId);
  }
}

/** Collects the outcomes of copies, counted through all emails of a call. */
function collectAnswers(
  emails: readonly ClaimedEmail[],
  onAnswer: (answer: AnsweredEmail) => void,
  onLate: (email: ClaimedEmail) => void,
) {
  const owners = emails.flatMap((email) => email.copies.map((_, index) => ({ email, index })));
  const outcomesOf = new Map(emails.map((email) => [email, new Map<number, SendOutcome>()]));
  const lateOf = new Map(emails.map((email) => [email, new Set<number>()]));
  const reportIfLate = (email: ClaimedEmail): void => {
    const late = lateOf.get(email) ?? new Set();
    const outcomes = outcomesOf.get(email) ?? new Map<number, SendOutcome>();
    const isLate = email.copies.every((_, index) => outcomes.has(index) || late.has(index));
    if (isLate && outcomes.size < email.copies.length) onLate(email);
  };
  return {
    /** Adds the first outcome of a copy; further ones are ignored. */
    add(position: number, outcome: SendOutcome): void {
      const { email, index } = owners[position] as (typeof owners)[number];
      const outcomes = outcomesOf.get(email);
      if (!outcomes || outcomes.has(index)) return;
      outcomes.set(index, storable(outcome));
      if (outcomes.size < email.copies.length) {
        reportIfLate(email);
        return;
      }
      const inOrder = email.copies.map((_, each) => outcomes.get(each) as SendOutcome);
      onAnswer(toAnswer({ email, outcomes: inOrder as [SendOutcome, ...SendOutcome[]] }));
    },
    markLate: (position: number): void => {
      const { email, index } = owners[position] as (typeof owners)[number];
      lateOf.get(email)?.add(index);
      reportIfLate(email);
    },
  };
}

/** Bounds a server's text and removes NUL, which Postgres rejects: the outcome could otherwise never be recorded. */
function storable(outcome: SendOutcome): SendOutcome {
  const clean = <T extends { readonly detail: string }>(entry: T): T => {
    return { ...entry, detail: storableText(entry.detail) };
  };
  const cleaned = 'detail' in outcome ? clean(outcome) : outcome;
  if (cleaned.kind === 'account' || cleaned.kind === 'postponed') return cleaned;
  const { refused, deferred } = cleaned;
  return {
    ...cleaned,
    ...(refused && { refused: refused.map(clean) }),
    ...(deferred && { deferred: deferred.map(clean) }),
  };
}

function toAnswer(sent: EmailOutcomes): AnsweredEmail {
  const outcome = outcomeOf(sent.outcomes);
  return {
    message: sent.email,
    sent,
    kind: outcome.kind,
    ending: endingOf(sent),
    accounts: accountAnswerOf(sent),
    ...(sent.outcomes.length > 1 && { copies: sent.outcomes.length }),
    ...('detail' in outcome && { detail: maskAddresses(outcome.detail) }),
  };
}
