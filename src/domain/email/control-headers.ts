/**
 * Headers by which email providers take instructions from whoever submits a message: Postmark, SendGrid, Amazon SES,
 * Mailgun, Mandrill, SparkPost and Mailjet. Through an operator's account they would let one organization add recipients
 * that are neither recorded nor suppressed, choose the stream, or report events about another organization's email.
 */
export const CONTROL_HEADERS: readonly string[] = [
  // Every name with one of these prefixes.
  ...['x-pm-', 'x-sg-', 'x-ses-', 'x-mailgun-', 'x-mc-', 'x-mailjet-', 'x-mj-'],
  ...['x-smtpapi', 'x-msys-api'],
];

/** Whether an email provider would obey a header of this name instead of passing it on. */
export function isControlHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return CONTROL_HEADERS.some((header) => (header.endsWith('-') ? lower.startsWith(header) : lower === header));
}
