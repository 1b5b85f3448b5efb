import { maskAddresses } from '../../lib/mask.ts';
import { storableText } from '../../lib/text.ts';
import type { SendOutcome } from '../../domain/email/retry.ts';
import { CLAIM_EXPIRED, isClaimExpired } from '../call.ts';
import { type AccountAnswer, sendersOf } from '../pauses.ts';
import type { AnsweredEmail, ClaimedEmail, EmailDeps, EmailOutcomes } from './contract.ts';
import { toMessage } from './recipients.ts';
import { endingOf, outcomeOf } from './record.ts';

/** Derives the state of our account from an email's outcome. Other messages may fail with the reason, so addresses are masked. */
function accountAnswerOf({ email, outcomes }: EmailOutcomes): AccountAnswer[] {
  const outcome = outcomeOf(outcomes);
  const { provider, copies } = email;
  const [copy] = copies;
  const answer = { provider: provider.name, senders: copy ? sendersOf(provider, copy) : [] };
  if (outcome.kind === 'sent') return [answer];
  if (outcome.kind !== 'account') return [];
  const [domain = '', stream = ''] = answer.senders;
  const sender = outcome.scope === 'sender' ? domain : outcome.scope === 'stream' ? stream : '';
  return [{ ...answer, refusal: { reason: maskAddresses(outcome.detail), sender } }];
}

/**
 * Sends emails in one provider call; if their claim has expired, answers `busy` for each instead.
 * @param onAnswer called for each email once the outcomes of all its copies are known
 */
export async function callProvider(
  { track, recorder }: Pick<EmailDeps, 'track' | 'recorder'>,
  emails: readonly ClaimedEmail[],
  onAnswer: (answer: AnsweredEmail) => void,
): Promise<void> {
  const [first] = emails as [ClaimedEmail];
  const copies = emails.flatMap((email) => email.copies);
  const owners = emails.flatMap((email) => email.copies.map((_, index) => ({ email, index })));
  const outcomesOf = new Map(emails.map((email) => [email, new Map<number, SendOutcome>()]));
  const addOutcome = (position: number, outcome: SendOutcome): void => {
    const owner = owners[position];
    const outcomes = owner && outcomesOf.get(owner.email);
    if (!outcomes || outcomes.has(owner.index)) return;
    outcomes.set(owner.index, storable(outcome));
    if (outcomes.size < owner.email.copies.length) return;
    const inOrder = owner.email.copies.map((_, index) => outcomes.get(index) as SendOutcome);
    onAnswer(toAnswer({ email: owner.email, outcomes: inOrder as [SendOutcome, ...SendOutcome[]] }));
  };
  if (isClaimExpired(first)) {
    copies.forEach((_, position) => addOutcome(position, CLAIM_EXPIRED));
    return;
  }
  const { provider, call } = first;
  const messages = copies.map((copy) =>
    provider.hasTracking ? toMessage(copy) : track(toMessage(copy), copy.recipient),
  );
  const handOvers = new Map<ClaimedEmail, Promise<void>>();
  const handOver = (position: number): Promise<void> => {
    const { email } = owners[position] as { email: ClaimedEmail };
    const recorded = handOvers.get(email) ?? recorder.handOver({ message_id: email.id, n: email.n });
    handOvers.set(email, recorded);
    return recorded;
  };
  const outcomes = await provider.send(messages, call, addOutcome, handOver);
  outcomes.forEach((outcome, position) => addOutcome(position, outcome));
}

/** Bounds a server's text and removes NUL, which Postgres rejects: the outcome could otherwise never be recorded. */
function storable(outcome: SendOutcome): SendOutcome {
  const clean = <T extends { readonly detail: string }>(entry: T): T => {
    return { ...entry, detail: storableText(entry.detail) };
  };
  const cleaned = 'detail' in outcome ? clean(outcome) : outcome;
  return 'refused' in cleaned ? { ...cleaned, refused: cleaned.refused.map(clean) } : cleaned;
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
