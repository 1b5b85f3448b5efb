/** Names in lower case. Those that end with a hyphen are prefixes of names. */
type HeaderNames = readonly string[];

/**
 * Headers that email providers and relays treat as instructions. On the operator's account they would let one organization add
 * recipients that are neither recorded nor suppressed, choose the stream, or report events about another organization's email.
 */
export const CONTROL_HEADERS: HeaderNames = [
  // Postmark, SendGrid, Amazon SES, Mailgun, Mandrill, Mailjet, SparkPost.
  ...['x-pm-', 'x-sg-', 'x-ses-', 'x-mailgun-', 'x-mc-', 'x-mailjet-', 'x-mj-'],
  ...['x-smtpapi', 'x-msys-api'],
  // Brevo, Elastic Email, Mailtrap, SMTP2GO, SocketLabs, Postal.
  ...[
    'x-mailin-',
    'x-sib-',
    'sib-',
    'x-brevo-',
    'x-elasticemail-',
    'x-mt-',
    'x-smtp2go-',
    'x-socketlabs-',
    'x-postal-',
  ],
  ...['istransactional', 'poolname', 'channelname', 'postback', 'encodingtype', 'trackopens', 'trackclicks'],
  ...['x-xsmailingid', 'x-xsmessageid'],
  // MailerSend, ZeptoMail, Resend, MailChannels, Netcore, Infobip, Sweego, Lettermint, AhaSend, MailPace, SendPulse, turboSMTP.
  ...[
    'x-mailersend-',
    'x-zeptomail-',
    'resend-',
    'x-resend-',
    'x-mailchannels-',
    'x-apiheader',
    'x-infobip-',
    'x-sweego-',
  ],
  ...['x-lettermint-', 'ahasend-', 'x-mailpace-', 'x-sendpulse-', 'x-turbosmtp-'],
  // Mail servers for bulk email: PowerMTA, GreenArrow, KumoMTA, Haraka.
  ...['x-virtual-mta', 'x-envid', 'x-pmta-', 'x-greenarrow-', 'x-kumomta-', 'x-kumoref', 'x-haraka-'],
];

/**
 * Headers in which mail servers record a message's way and what they found out about it. Given by a sender, they pretend a result of
 * authentication or of a filter, or make a server see a loop and refuse the message.
 */
export const SERVER_HEADERS: HeaderNames = [
  // RFC 8601, 8617, 7208, 6376, 4870 and the forms of providers.
  ...[
    'authentication-results',
    'authentication-results-original',
    'x-authentication-',
    'x-authenticated-',
    'received-spf',
  ],
  ...['x-original-authentication-results', 'arc-', 'x-arc-', 'dkim-', 'x-dkim-', 'x-google-dkim-signature'],
  ...['domainkey-signature', 'domainkey-status', 'bimi-location', 'bimi-indicator'],
  // The envelope and the way.
  ...['delivered-to', 'x-delivered-to', 'x-original-to', 'original-recipient', 'envelope-to', 'x-envelope-'],
  ...['apparently-to', 'delivery-date', 'x-received', 'x-received-spf', 'x-forwarded-to', 'x-forwarded-for'],
  // Results of filters.
  ...['x-ms-exchange-', 'x-forefront-', 'x-microsoft-antispam', 'x-microsoft-antispam-', 'x-exchange-'],
  ...['x-spam-', 'x-rspamd-', 'x-virus-', 'x-proofpoint-', 'x-mimecast-', 'x-barracuda-'],
];

/** Returns true if an email provider would treat a header of this name as an instruction. */
export function isControlHeader(name: string): boolean {
  return isNamed(CONTROL_HEADERS, name);
}

/** Returns true if only mail servers may write a header of this name. */
export function isServerHeader(name: string): boolean {
  return isNamed(SERVER_HEADERS, name);
}

function isNamed(names: HeaderNames, name: string): boolean {
  const lower = name.toLowerCase();
  return names.some((each) => (each.endsWith('-') ? lower.startsWith(each) : lower === each));
}
