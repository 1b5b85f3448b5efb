/** How long a limit is remembered. Afterwards one transaction with more recipients shows whether it still holds. */
const REMEMBERED_FOR_MS = 3_600_000;

/**
 * The enhanced code of "too many recipients" (RFC 3463 section 3.6). Servers also use it if the recipients of one transaction do not
 * belong together.
 */
const LIMIT_CODE = /^\d{3}[ -][45]\.5\.3\b/;
const MANY = String.raw`(?:recipients|rcpts|addressees|receivers)\b`;
const ONE_OR_MANY = '(?:recipients?|rcpts?|addressees?|receivers?)';
const BOUND = String.raw`(?:number|limit|max(?:imum)?|count|more than|amount)`;
const LIMIT_WORDS = new RegExp(
  [
    String.raw`\b(?:too many|more than \d+)\b.{0,20}\b(?:${ONE_OR_MANY}|addresses|destinations)\b`,
    String.raw`${ONE_OR_MANY}[ -]?(?:limit|count|number|maximum|max)\b`,
    String.raw`\b${BOUND} (?:of |allowed |permitted |the |envelope |message |\d+ )*${MANY}`,
    String.raw`\b(?:at most|up to|only|exceed\w*|over|limited to) (?:the )?\d+ (?:envelope )?${MANY}`,
    String.raw`\b\d+ (?:envelope )?${MANY}.{0,30}\b(?:max(?:imum)?|limit|allowed|permitted|exceed\w*|per (?:e-?mail|message|mail|transaction|session|envelope))\b`,
    String.raw`\b${MANY}.{0,30}(?:\b(?:exceed\w*|over|above|more than|greater than|limited to)\b|>).{0,20}\d`,
    String.raw`\b${ONE_OR_MANY} per (?:e-?mail|message|mail|transaction|session|envelope)\b`,
  ].join('|'),
  'i',
);
/** A limit on the recipients of some time, unlike one on those of a transaction. */
const OF_A_TIME =
  /\b(?:second|minute|hour|day|week|month)(?:s|ly)?\b|\bdaily\b|\brate\b|\b\d+ ?(?:s|secs?|mins?|h|hrs?|d)\b/i;
/** A number that is no part of a code, an address or a time. */
const NUMBER = /(?<![\w.:+-])\d{1,5}(?![\w:-]|\.\d)/g;

/**
 * Returns true if a reply to RCPT TO or DATA means that the server takes fewer recipients in one transaction. RFC 5321 section
 * 4.5.3.1.10: clients treat 552 with this meaning as 452.
 */
export function isRecipientLimit(reply: string): boolean {
  return (LIMIT_CODE.test(reply) || LIMIT_WORDS.test(reply)) && !OF_A_TIME.test(reply);
}

/**
 * Returns how many recipients the next transaction may name after one failed: as many as the reply to the message states, or half as
 * many; as many as were accepted if the server closed the connection at the next one (421); undefined if the reply is not about that.
 * @param acceptedCount the recipients that were accepted by RCPT TO
 */
export function fewerRecipients(
  { command, response = '' }: { readonly command?: string | undefined; readonly response?: string | undefined },
  acceptedCount: number,
): number | undefined {
  if (!isRecipientLimit(response)) return undefined;
  if (command === 'CONN') return acceptedCount > 0 ? acceptedCount : undefined;
  return command === 'DATA' && acceptedCount > 1 ? belowLimit(response, acceptedCount) : undefined;
}

function belowLimit(reply: string, count: number): number {
  const text = reply.replace(/^\d{3}[ -]/, '');
  const stated = [...text.matchAll(NUMBER)].map(([number]) => Number(number)).filter((n) => n > 0 && n < count);
  return stated.length > 0 ? Math.max(...stated) : Math.floor(count / 2);
}

/** The number of recipients that a server takes in one transaction, as far as its refusals have shown it. */
export function makeRecipientLimit() {
  let most = Infinity;
  let forgottenAt = 0;
  const current = (): number => (performance.now() < forgottenAt ? most : Infinity);
  return {
    current,
    lower: (count: number): void => {
      most = Math.min(current(), count);
      forgottenAt = performance.now() + REMEMBERED_FOR_MS;
    },
  };
}
