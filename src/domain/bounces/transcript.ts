/** Matches SMTP reply codes within a transcript, if text follows, but not amounts ("limit of 500 attachments"). */
const REPLY_CODES =
  /(?<![\w.#/+-])(?<!(?:of|than|least|most|over|exceeds?|after|within|every|past|maximum|max|only|about|up to|limit)\s{1,4})(?:4(?:2[12]|5[0-5]|71)|5(?:0[0-4]|2[135]|3[0458]|4[0-2]|5[0-7]|7[01]))(?=[- ]+["'<#([]{0,2}[\p{L}\d])(?!\s+(?:[kmg]i?b|bytes|octets|char\w*|lines|messages|e?mails|recipients|attachments|connections|seconds|minutes|hours|days)(?!\p{L}))/giu;

/** Matches a reply to a command that failed only because recipients had been refused before, also one that quotes why (Barracuda). */
const CONSEQUENCE =
  /^(?:503|554[- ]5\.5\.1)|no valid recipients|need rcpt|valid rcpt command|permanent failure for one or more recipients/i;

/** A message that expired in a queue. The replies after it are the refusals that lasted until then. */
const EXPIRY = /^5\d\d[-\s]+[45]\.4\.7\s/;

/**
 * Returns the decisive reply of a transcript of several, including the text before the first one: the last 5xx, otherwise the
 * last 4xx. Consequences of an earlier refusal are skipped. The lines of one reply repeat its code. Returns undefined if the
 * text contains fewer than two replies, or if the message expired: then the whole text is decisive.
 */
export function decisiveReply(text: string): string | undefined {
  const replies: { code: string; start: number; text: string }[] = [];
  for (const { 0: code, index } of text.matchAll(REPLY_CODES)) {
    if (replies.at(-1)?.code !== code) replies.push({ code, start: index, text: '' });
  }
  const [first] = replies;
  if (!first || replies.length < 2 || EXPIRY.test(text.slice(first.start))) return undefined;
  replies.forEach((reply, i) => (reply.text = text.slice(reply.start, replies[i + 1]?.start)));
  const causes = replies.filter((reply) => !CONSEQUENCE.test(reply.text));
  const decisive = causes.findLast(({ code }) => code.startsWith('5')) ?? causes.at(-1);
  return decisive && text.slice(0, first.start) + decisive.text;
}
