import type { Tag } from '../domain/email/email.ts';

/** A stored event. */
export interface EventFacts {
  readonly id: string;
  readonly type: string;
  /** UTC with milliseconds. */
  readonly created_at: string;
  /** The id of the email that it concerns; null for an event about something else, also about a chat-app message or an SMS. */
  readonly message_id: string | null;
  /** Fields of `data` besides the email's own; keys in camelCase, no null values. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** Fields of an email that identify it to its owner. */
export interface EmailFacts {
  readonly batch_id: string | null;
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly tags: readonly Tag[];
}

/** The fields of a stored delivery that determine its payload. */
interface DeliveryFacts extends Omit<EventFacts, 'id'> {
  readonly event_id: string;
  /** The payload that a failed attempt has posted; null if none has failed. */
  readonly payload: string | null;
  readonly email: EmailFacts | null;
}

/** Largest payload. */
const MAX_PAYLOAD_BYTES = 20_000;
/** Largest server response and link in a payload, as JSON. */
const MAX_ERROR_BYTES = 4_000;
const MAX_LINK_BYTES = 4_000;
/** Longest subject in a payload that is still too large; at least one recipient then fits. */
const MAX_TRUNCATED_SUBJECT_BYTES = 1_000;

/**
 * Returns the payload of a delivery. Retries post the stored payload of the failed attempt, even after an upgrade that would
 * build another one. A successful delivery stores none, so a replay builds it again.
 */
export function payloadOfDelivery({ payload, event_id: id, email, ...event }: DeliveryFacts): string {
  return payload ?? payloadOf({ ...event, id }, email ?? undefined);
}

/**
 * Builds the webhook payload of an event. The result is deterministic.
 * If the record of its email was deleted, `emailId` remains the only field of the email.
 * It stays below 20 kB. A server's response and a link are truncated to 4 kB each. If that does not suffice, recipients that
 * do not fit are omitted; if none fits, the tags too, and finally the subject is truncated to 1 kB. `data.truncated` names
 * the fields.
 */
export function payloadOf(event: EventFacts, email: EmailFacts | undefined): string {
  const reported = truncateFields(event.data);
  const write = (own: Record<string, unknown>, truncated: readonly string[] = []): string =>
    JSON.stringify({
      id: event.id,
      type: event.type,
      created_at: event.created_at,
      data: Object.assign({}, own, reported, truncated.length > 0 && { truncated }),
    });
  if (event.message_id === null) return write({});
  if (!email) return write({ emailId: event.message_id });

  const { batch_id, from, to, subject, tags } = email;
  const head = { emailId: event.message_id, ...(batch_id !== null && { batchId: batch_id }), from };
  const whole = write(Object.assign({}, head, { to, subject, tags }));
  if (bytes(whole) < MAX_PAYLOAD_BYTES) return whole;

  const writeWithout = (rest: Record<string, unknown>, ...truncated: string[]): string | undefined => {
    const maxBytes = MAX_PAYLOAD_BYTES - 1 - bytes(write({ ...head, to: [], ...rest }, truncated));
    const fitting = takeFitting(to, maxBytes);
    return fitting.length > 0 ? write({ ...head, to: fitting, ...rest }, truncated) : undefined;
  };
  const short = { subject: truncate(subject, MAX_TRUNCATED_SUBJECT_BYTES) };
  return (
    writeWithout({ subject, tags }, 'to') ??
    writeWithout({ subject }, 'to', 'tags') ??
    writeWithout(short, 'to', 'tags', 'subject') ??
    write({ ...head, ...short }, ['to', 'tags', 'subject'])
  );
}

/** Returns the first recipients that fit into a number of bytes. */
function takeFitting(to: readonly string[], maxBytes: number): string[] {
  const fitting: string[] = [];
  let left = maxBytes;
  for (const recipient of to) {
    left -= bytes(JSON.stringify(recipient)) + 1;
    if (left < 0) break;
    fitting.push(recipient);
  }
  return fitting;
}

function truncateFields(data: EventFacts['data']): Record<string, unknown> {
  const { error, click } = data as { error?: unknown; click?: { link?: unknown } };
  return {
    ...data,
    ...(typeof error === 'string' && { error: truncate(error, MAX_ERROR_BYTES) }),
    ...(typeof click?.link === 'string' && { click: { ...click, link: truncate(click.link, MAX_LINK_BYTES) } }),
  };
}

/** Truncates text to a number of bytes of JSON. */
function truncate(text: string, maxBytes: number): string {
  if (bytes(JSON.stringify(text)) - 2 <= maxBytes) return text;
  let [left, units] = [maxBytes, 0];
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
