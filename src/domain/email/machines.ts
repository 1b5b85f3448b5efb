import { isbot } from 'isbot';

/** The headers of a tracking request that identify its client. */
interface TrackingRequest {
  readonly userAgent: string | undefined;
  /** The values of the headers Sec-Purpose, Purpose, X-Purpose and X-Moz that are present. */
  readonly purposes: readonly string[];
}

/**
 * Programs that act when a person opens an email or follows a link, although isbot lists some of them: the image proxies of
 * Gmail (https://support.google.com/mail/answer/145919) and Yahoo Mail
 * (https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html), and mail clients whose User-Agent does not name a browser.
 */
const FOR_PEOPLE =
  /GoogleImageProxy|Yahoo(?:MailProxy|MobileMail)|Outlook|Thunderbird|Postbox|Evolution\/|eM ?Client|Mailbird|Spark\/|Superhuman|Zimbra|Lotus-Notes|Mail(?:\/|\s|$)/i;

/**
 * The User-Agent of Apple's proxies, which load the images of an email when it arrives, even if it is never read
 * (https://support.apple.com/guide/iphone/use-mail-privacy-protection-iphf084865c7/ios,
 * https://help.socketlabs.com/docs/identifying-apple-mpp-opens-in-notification-api-events).
 */
const APPLE_MAIL_PRIVACY = 'Mozilla/5.0';

/**
 * Matches requests of browsers that load a page before the user requests it
 * (https://fetch.spec.whatwg.org/#sec-purpose-header). Browsers sent the other headers before that one was standardized.
 */
const PREFETCH = /^\s*(?:prefetch|preview|prerender)/i;

/**
 * True if a program made the tracking request without a person. A scanner that imitates a browser is not recognized by a
 * single request: see `isScan`.
 */
export function isMachine({ userAgent, purposes }: TrackingRequest): boolean {
  return purposes.some((purpose) => PREFETCH.test(purpose)) || isMachineAgent(userAgent);
}

/** @param userAgent undefined if the request has none; browsers and mail clients always send one */
export function isMachineAgent(userAgent: string | undefined): boolean {
  const agent = userAgent?.trim() ?? '';
  if (agent === '' || agent === APPLE_MAIL_PRIVACY) return true;
  return !FOR_PEOPLE.test(agent) && isbot(agent);
}

/**
 * Link scanners follow links as soon as an email arrives. A burst later than this after the hand-over is not attributed to
 * one.
 */
export const SCAN_WITHIN_MS = 60_000;
/** The length of a burst. A person rarely opens two links of an email within it, just after the email was sent. */
export const BURST_MS = 5_000;

/**
 * True if requests of one recipient, all within a burst just after the email was sent, come from a scanner: gateways such as
 * Barracuda's and Microsoft's follow all links of an email before they deliver it, partly with a browser's User-Agent
 * (https://learn.microsoft.com/defender-office-365/safe-links-about).
 * @param links the targets of the clicks
 */
export function isScan(links: readonly string[]): boolean {
  return new Set(links).size > 1;
}
