import type { ChatUser, UserChange } from './inbound.ts';

/** A user who has written to a number of ours. */
export interface Contact {
  /** E.164; null while the user withholds it. */
  readonly wa_number: string | null;
  /** Business-scoped; null if the user has not written since providers report it. */
  readonly user_id: string | null;
  /** The id before the last change, which late callbacks contain. */
  readonly former_user_id: string | null;
  readonly username: string | null;
  /** UTC with milliseconds; null if only a change of its id is known. */
  readonly last_inbound_at: string | null;
}

export interface StoredContact extends Contact {
  readonly id: string;
}

/** The changes to the contacts that share an id or the number with a user. */
export interface ContactPlan {
  /** Duplicates of `save`. */
  readonly remove: readonly StoredContact[];
  /** A contact that loses its number because another user has it now. */
  readonly withdrawNumber: StoredContact | undefined;
  /** The contact to store; new if it has no id. */
  readonly save: Contact & { readonly id?: string };
}

type Ids = Pick<ChatUser, 'number' | 'userId'>;

/**
 * Applies a message to the contacts that share an id or the number with its user, so that one contact remains in any
 * order of messages. An id identifies a user; a number belongs to the user who has written from it last.
 * @param sentAt UTC with milliseconds
 */
export function contactAfterMessage(contacts: readonly StoredContact[], user: ChatUser, sentAt: string): ContactPlan {
  const byId = contactOf(contacts, user.userId);
  const byNumber = contacts.find(({ wa_number }) => wa_number !== null && wa_number === user.number);
  // A contact or a message without a user id may belong to any user of the number.
  const isSame = byNumber?.user_id === null || user.userId === null || byNumber === byId;
  const target = byId ?? (isSame ? byNumber : undefined);
  const other = byNumber === target ? undefined : byNumber;
  const merged = isSame ? other : undefined;
  // The message contains an id that the user has changed since.
  const isFormer =
    target !== undefined && target.user_id !== null && user.userId !== null && target.user_id !== user.userId;
  const isLatest = !isFormer && isAfter(sentAt, target?.last_inbound_at);
  // A number passes from another user only to one who has written from it since.
  const ownsNumber = other === undefined || isSame || isAfter(sentAt, other.last_inbound_at);
  const number = ownsNumber ? user.number : null;
  const wa_number = isLatest ? (number ?? target?.wa_number) : (target?.wa_number ?? number);
  const username = isLatest ? (user.username ?? target?.username) : (target?.username ?? user.username);
  return planOf(contacts, target, merged ? [merged] : [], {
    wa_number: wa_number ?? null,
    user_id: target?.user_id ?? user.userId,
    former_user_id: target?.former_user_id ?? null,
    username: username ?? null,
    last_inbound_at: latest(sentAt, target?.last_inbound_at, merged?.last_inbound_at),
  });
}

/** Applies a change of a user's id or number, which may arrive before or after messages with either of them. */
export function contactAfterChange(contacts: readonly StoredContact[], { before, after }: UserChange): ContactPlan {
  const old = contactOf(contacts, before.userId) ?? withNumber(contacts, before);
  const numbered = contacts.find(
    ({ wa_number, user_id }) => wa_number !== null && wa_number === after.number && user_id === null,
  );
  const target = contactOf(contacts, after.userId) ?? numbered ?? old;
  const duplicates = [old, numbered].filter((each) => each !== undefined && each !== target) as StoredContact[];
  const userId = after.userId ?? target?.user_id ?? null;
  const formerIds = [before.userId, old?.user_id, target?.former_user_id];
  const sources = [...(target ? [target] : []), ...duplicates];
  return planOf(contacts, target, duplicates, {
    wa_number: after.number ?? sources.find(({ wa_number }) => wa_number !== null)?.wa_number ?? null,
    user_id: userId,
    former_user_id: formerIds.find((id) => id != null && id !== userId) ?? null,
    username: sources.find(({ username }) => username !== null)?.username ?? null,
    last_inbound_at: latest(...sources.map(({ last_inbound_at }) => last_inbound_at)),
  });
}

/** Builds the plan. Only one contact may have a number. */
function planOf(
  contacts: readonly StoredContact[],
  target: StoredContact | undefined,
  remove: readonly StoredContact[],
  contact: Contact,
): ContactPlan {
  const { wa_number } = contact;
  const holder = contacts.find((each) => each !== target && wa_number !== null && each.wa_number === wa_number);
  return {
    remove,
    withdrawNumber: holder && !remove.includes(holder) ? holder : undefined,
    save: { ...(target && { id: target.id }), ...contact },
  };
}

function contactOf(contacts: readonly StoredContact[], userId: string | null): StoredContact | undefined {
  if (userId === null) return undefined;
  return (
    contacts.find(({ user_id }) => user_id === userId) ??
    contacts.find(({ former_user_id }) => former_user_id === userId)
  );
}

/** Returns the contact that has the number, unless both the contact and the user have an id. */
function withNumber(contacts: readonly StoredContact[], { number, userId }: Ids): StoredContact | undefined {
  return contacts.find(
    ({ wa_number, user_id }) => number !== null && wa_number === number && (user_id === null || userId === null),
  );
}

function isAfter(time: string, other: string | null | undefined): boolean {
  return other == null || time >= other;
}

/** Returns the latest time. Compares text, since all times are UTC with milliseconds. */
function latest(...times: readonly (string | null | undefined)[]): string | null {
  return times.reduce<string | null>(
    (last, time) => (time != null && (last === null || time > last) ? time : last),
    null,
  );
}
