/**
 * Headers that email providers treat as instructions: Postmark, SendGrid, Amazon SES, Mailgun, Mandrill, SparkPost and
 * Mailjet. On the operator's account they would let one organization add recipients that are neither recorded nor
 * suppressed, choose the stream, or report events about another organization's email.
 */
export const CONTROL_HEADERS: readonly string[] = [
  // Prefixes of header names.
  ...['x-pm-', 'x-sg-', 'x-ses-', 'x-mailgun-', 'x-mc-', 'x-mailjet-', 'x-mj-'],
  ...['x-smtpapi', 'x-msys-api'],
];

/** Returns true if an email provider would treat a header of this name as an instruction. */
export function isControlHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return CONTROL_HEADERS.some((header) => (header.endsWith('-') ? lower.startsWith(header) : lower === header));
}
