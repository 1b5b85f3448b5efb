/**
 * Headers by which email providers take instructions from whoever submits a message: Postmark, SendGrid, Amazon SES,
 * Mailgun, Mandrill, SparkPost and Mailjet. Through an operator's account they would let one organization add recipients
 * that are neither recorded nor suppressed, choose the stream, or report events about another organization's email.
 */
const CONTROL_HEADERS = /^x-(?:pm-|smtpapi$|sg-|ses-|mailgun-|mc-|msys-api$|mailjet-|mj-)/i;

/** Whether an email provider would obey a header of this name instead of passing it on. */
export function isControlHeader(name: string): boolean {
  return CONTROL_HEADERS.test(name);
}
