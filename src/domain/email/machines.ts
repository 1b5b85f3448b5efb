import { isbot } from 'isbot';

/** What a request for a tracking link states about its client. */
export interface TrackingRequest {
  readonly userAgent: string | undefined;
  /** Values of the headers Sec-Purpose, Purpose, X-Purpose and X-Moz, where they were sent. */
  readonly purposes: readonly string[];
}

/**
 * Programs that act when a person opens an email or follows a link, although isbot lists some of them: Gmail's image proxy
 * (https://support.google.com/mail/answer/145919), that of Yahoo Mail (https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html), and mail
 * applications that name themselves without a browser.
 */
const FOR_PEOPLE = /GoogleImageProxy|YahooMailProxy|Outlook-(?:iOS|Android)|Airmail|Lotus-Notes|Thunderbird/i;

/**
 * The user agent of Apple's proxies, which load the images of an email when it arrives, read or not
 * (https://support.apple.com/guide/iphone/use-mail-privacy-protection-iphf084865c7/ios, https://help.socketlabs.com/docs/identifying-apple-mpp-opens-in-notification-api-events).
 */
const APPLE_MAIL_PRIVACY = 'Mozilla/5.0';

/**
 * Browsers that load a page before somebody asks for it (https://fetch.spec.whatwg.org/#sec-purpose-header); the other headers
 * are what they sent before that was standardized.
 */
const PREFETCH = /^\s*(?:prefetch|preview|prerender)/i;

/**
 * Returns whether a program requested a tracking link by itself. A scanner that imitates a browser cannot be told from one by
 * its request: see `isScan`.
 */
export function isMachine({ userAgent, purposes }: TrackingRequest): boolean {
  return purposes.some((purpose) => PREFETCH.test(purpose)) || isMachineAgent(userAgent);
}

/** @param userAgent undefined if none was sent, which browsers and mail clients always do */
export function isMachineAgent(userAgent: string | undefined): boolean {
  const agent = userAgent?.trim() ?? '';
  if (agent === '' || agent === APPLE_MAIL_PRIVACY) return true;
  return !FOR_PEOPLE.test(agent) && isbot(agent);
}

/** Links scanners follow as soon as an email arrives; at most so long after the hand-over a burst counts as theirs. */
export const SCAN_WITHIN_MS = 60_000;
/** The length of a burst. A person rarely opens two links of an email within it, just after the email was sent. */
export const BURST_MS = 5_000;

/**
 * Returns whether requests of one recipient, all within a burst and just after the email was sent, are those of a scanner:
 * gateways such as Barracuda's and Microsoft's follow all links of an email before they deliver it, partly as a browser
 * (https://learn.microsoft.com/defender-office-365/safe-links-about).
 * @param links the targets of the clicks
 */
export function isScan(links: readonly string[]): boolean {
  return new Set(links).size > 1;
}
