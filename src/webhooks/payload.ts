import type { Tag } from '../domain/email/email.ts';

/** What happened, as it was written down. */
export interface EventFacts {
  readonly id: string;
  readonly type: string;
  /** UTC with milliseconds. */
  readonly created_at: string;
  /** The email it is about. */
  readonly message_id: string | null;
  /** What belongs into `data` besides the email's own fields; keys in camelCase, nothing null. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** The fields of an email that tell its owner which one it is. */
export interface EmailFacts {
  readonly batch_id: string | null;
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly tags: readonly Tag[];
}

/** Bytes that a payload stays below. */
const BYTES = 20_000;
/** Bytes, as JSON, of what a server said and of a link. */
const ERROR_BYTES = 4_000;
const LINK_BYTES = 4_000;
/** Bytes of a subject that has to give way: with it, at least one recipient always fits. */
const SHORT_SUBJECT = 1_000;

/**
 * The body that endpoints get for an event: the same text for the same facts, always.
 *
 * It stays below 20 kB whatever the email holds. What a server said and a link are cut to 4 kB each. Where that is not
 * enough, recipients beyond those that fit are left out; where not even one fits, the tags too, and at last the subject is
 * cut to 1 kB. `data.truncated` names what has given way.
 */
export function payloadOf(event: EventFacts, email: EmailFacts | undefined): string {
  const reported = shortened(event.data);
  const write = (own: Record<string, unknown>, truncated: readonly string[] = []): string =>
    JSON.stringify({
      id: event.id,
      type: event.type,
      created_at: event.created_at,
      data: { ...own, ...reported, ...(truncated.length > 0 && { truncated }) },
    });
  if (event.message_id === null || !email) return write({});

  const { batch_id, from, to, subject, tags } = email;
  const head = { emailId: event.message_id, ...(batch_id !== null && { batchId: batch_id }), from };
  const whole = write({ ...head, to, subject, tags });
  if (bytes(whole) < BYTES) return whole;

  const without = (rest: Record<string, unknown>, ...truncated: string[]): string | undefined => {
    const room = BYTES - 1 - bytes(write({ ...head, to: [], ...rest }, truncated));
    const fitting = thatFit(to, room);
    return fitting.length > 0 ? write({ ...head, to: fitting, ...rest }, truncated) : undefined;
  };
  const short = { subject: cut(subject, SHORT_SUBJECT) };
  return (
    without({ subject, tags }, 'to') ??
    without({ subject }, 'to', 'tags') ??
    without(short, 'to', 'tags', 'subject') ??
    write({ ...head, ...short }, ['to', 'tags', 'subject'])
  );
}

/** The first recipients that a number of bytes is enough for. */
function thatFit(to: readonly string[], room: number): string[] {
  const fitting: string[] = [];
  let left = room;
  for (const recipient of to) {
    left -= bytes(JSON.stringify(recipient)) + 1;
    if (left < 0) break;
    fitting.push(recipient);
  }
  return fitting;
}

function shortened(data: EventFacts['data']): Record<string, unknown> {
  const { error, click } = data as { error?: unknown; click?: { link?: unknown } };
  return {
    ...data,
    ...(typeof error === 'string' && { error: cut(error, ERROR_BYTES) }),
    ...(typeof click?.link === 'string' && { click: { ...click, link: cut(click.link, LINK_BYTES) } }),
  };
}

/** As much of a text as so many bytes of JSON hold. */
function cut(text: string, most: number): string {
  if (bytes(JSON.stringify(text)) - 2 <= most) return text;
  let [left, units] = [most, 0];
  for (const character of text) {
    left -= bytes(JSON.stringify(character)) - 2;
    if (left < 0) break;
    units += character.length;
  }
  return text.slice(0, units);
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}
