import type { Logger } from 'pino';
import { replaceLinks } from '../../domain/email/html-links.ts';
import type { OutgoingEmail } from '../../domain/email/outgoing.ts';
import { clickUrl, makeTrackingTokens, openUrl, type TrackedEmail } from '../../domain/email/tracked-links.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

/**
 * Maximum number of links of an email that are tracked. A tracked link is many times longer than a short one, and takes 10 µs to
 * sign: 1 MB of links would become 9 MB for each copy, and stop the worker for half a second.
 */
const MAX_TRACKED_LINKS = 1_000;

/**
 * Inserts the tracking image and links into the HTML of an email whose domain has them on. Plain text, headers and the
 * unsubscribe link stay as they are.
 * @param recipient the position of its only recipient; null if there are several
 */
export type Track = (email: OutgoingEmail, recipient: number | null) => OutgoingEmail;

/** @param publicUrl undefined if `PUBLIC_URL` is not set: email is sent untracked, and the log names the setting */
export function makeTrack(publicUrl: string | undefined, secretKeys: SecretKeys, log: Pick<Logger, 'error'>): Track {
  const tokens = makeTrackingTokens(secretKeys);
  return (email, recipient) => {
    const { html, tracking, unsubscribeUrl } = email;
    if (html === null || !(tracking.opens || tracking.clicks)) return email;
    if (publicUrl === undefined) {
      log.error({ email: email.id }, 'email sent untracked: PUBLIC_URL is not set');
      return email;
    }
    const tracked: TrackedEmail = { emailId: email.id, recipient, sentAt: Math.floor(Date.now() / 1_000) };
    let linksLeft = MAX_TRACKED_LINKS;
    const linkFor = (href: string) => {
      if (linksLeft === 0 || href.trim() === unsubscribeUrl) return undefined;
      const url = clickUrl(publicUrl, tokens, tracked, href);
      if (url !== undefined) linksLeft--;
      return url;
    };
    const image = tracking.opens ? imageOf(openUrl(publicUrl, tokens, tracked)) : '';
    return { ...email, html: replaceLinks(html, tracking.clicks ? linkFor : () => undefined, image) };
  };
}

function imageOf(url: string): string {
  return `<img src="${url}" width="1" height="1" alt="" style="border:0;height:1px;width:1px">`;
}
