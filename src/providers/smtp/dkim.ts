import { createHash, sign } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { DkimSigner } from '../../domain/senders/dkim.ts';
import { groupBy } from '../../lib/group.ts';

/** The signed headers: all that a mail program shows or acts on, as RFC 6376 §5.4.1 and RFC 8058 §4 require. */
const SIGNED_HEADERS = [
  ...['from', 'sender', 'reply-to', 'subject', 'date', 'message-id', 'to', 'cc', 'mime-version', 'content-type'],
  ...['content-transfer-encoding', 'in-reply-to', 'references', 'list-id', 'list-unsubscribe', 'list-unsubscribe-post'],
];
/**
 * The signature lists these headers once more than they occur, so that adding another one makes it invalid (RFC 6376 §8.15):
 * many programs show the first of several. nodemailer's own signatures list each header once.
 */
const OVERSIGNED_HEADERS = new Set(['from', 'to', 'subject', 'date']);
/** Characters of a line of the signature's header; a longer word has a longer line. */
const MAX_LINE_LENGTH = 72;

/** Signs on a thread of Node's pool, since a signature takes about a millisecond. */
const signOnPool = promisify(sign);
/** After this many pieces, which take a few milliseconds, the event loop may run other work. */
const PIECES_PER_TURN = 16;

/**
 * Signs a message with RSA-SHA256, relaxed/relaxed (RFC 6376). Reads all of its pieces before it yields the first one, since the
 * signature precedes them.
 */
export async function* signDkim(message: Iterable<Buffer>, signer: DkimSigner): AsyncGenerator<Buffer> {
  const pieces: Buffer[] = [];
  const body = new RelaxedBodyHash();
  let head = '';
  let isInBody = false;
  for (const piece of message) {
    pieces.push(piece);
    const text = piece.toString('latin1');
    if (isInBody) body.update(text);
    else {
      head += text;
      const end = head.indexOf('\r\n\r\n');
      if (end >= 0) {
        isInBody = true;
        body.update(head.slice(end + 4));
        head = head.slice(0, end);
      }
    }
    if (pieces.length % PIECES_PER_TURN === 0) await setImmediate();
  }
  const field = Buffer.from(`${await signature(head, body.digest(), signer)}\r\n`, 'latin1');
  // Joins the two, since the socket writes each piece by a system call.
  yield Buffer.concat([field, ...pieces.slice(0, 1)]);
  yield* pieces.slice(1);
}

/** Returns the header field with the signature, folded, without the last line break. */
async function signature(head: string, bodyHash: string, { domain, selector, key }: DkimSigner): Promise<string> {
  const nameOf = (field: string) => field.slice(0, field.indexOf(':')).trim().toLowerCase();
  const fields = groupBy(head.split(/\r\n(?![ \t])/), nameOf);
  const names: string[] = [];
  const signed: string[] = [];
  for (const name of SIGNED_HEADERS) {
    // Verifiers read repeated headers from the last to the first (RFC 6376 §5.4.2).
    const occurrences = (fields.get(name) ?? []).toReversed();
    names.push(...occurrences.map(() => name), ...(OVERSIGNED_HEADERS.has(name) ? [name] : []));
    signed.push(...occurrences.map(relaxHeader));
  }
  const tags = ['v=1', 'a=rsa-sha256', 'c=relaxed/relaxed', `d=${domain}`, `s=${selector}`, `bh=${bodyHash}`];
  const field = `DKIM-Signature: ${[...tags, `h=${fold(names)}`, 'b='].join(';\r\n ')}`;
  const data = [...signed, relaxHeader(field)].join('\r\n');
  const base64 = (await signOnPool('RSA-SHA256', Buffer.from(data, 'latin1'), key)).toString('base64');
  return field + (base64.match(new RegExp(`.{1,${MAX_LINE_LENGTH}}`, 'g')) ?? []).join('\r\n ');
}

/** RFC 6376 §3.4.2. */
function relaxHeader(field: string): string {
  const colon = field.indexOf(':');
  const value = field
    .slice(colon + 1)
    .replaceAll('\r\n', '')
    .replaceAll(/[ \t]+/g, ' ')
    .trim();
  return `${field.slice(0, colon).trim().toLowerCase()}:${value}`;
}

function fold(names: readonly string[]): string {
  let text = '';
  let length = 0;
  for (const [i, name] of names.entries()) {
    const isNew = i > 0 && length + name.length > MAX_LINE_LENGTH;
    text += `${i === 0 ? '' : ':'}${isNew ? '\r\n ' : ''}${name}`;
    length = isNew ? name.length : length + name.length + 1;
  }
  return text;
}

/**
 * A line end: nodemailer's DataStream also sends a single CR or LF as CRLF. A CR at the end of a piece may be the first half of a
 * CRLF.
 */
const LINE_END = /\r\n|\n|\r(?!$)/;

/** Hashes a body in relaxed form (RFC 6376 §3.4.4), line by line. */
class RelaxedBodyHash {
  readonly #hash = createHash('sha256');
  #rest = '';
  #emptyLines = 0;

  /** @param text as latin1 */
  update(text: string): void {
    const lines = (this.#rest + text).split(LINE_END);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#add(line);
  }

  digest(): string {
    if (this.#rest !== '') this.#add(this.#rest.replace(/\r$/, ''));
    return this.#hash.digest('base64');
  }

  #add(line: string): void {
    const text = line.replaceAll(/[ \t]+/g, ' ').replace(/ $/, '');
    if (text === '') {
      this.#emptyLines++;
      return;
    }
    // Empty lines at the end of the body do not count.
    this.#hash.update(`${'\r\n'.repeat(this.#emptyLines)}${text}\r\n`, 'latin1');
    this.#emptyLines = 0;
  }
}
