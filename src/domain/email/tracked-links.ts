import type { SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner, SHORT_SIGNATURE_BYTES } from '../../lib/signer.ts';

/** The enabled tracking of a domain or an email: opens by an image, clicks by redirecting links. */
export interface Tracking {
  readonly opens: boolean;
  readonly clicks: boolean;
}

export const UNTRACKED: Tracking = { opens: false, clicks: false };

/** The email to which a tracking link belongs. Contains no address. */
export interface TrackedEmail {
  readonly emailId: string;
  /** The recipient's position, from 0 over to, cc and bcc; null for an email to several recipients. */
  readonly recipient: number | null;
  /** The time at which the links were made, just before the hand-over to the provider, in Unix seconds. */
  readonly sentAt: number;
}

/** A signed link target. */
interface TrackedLink extends TrackedEmail {
  readonly url: string;
}

type TrackingTokens = ReturnType<typeof makeTrackingTokens>;

const SIGNATURE_LENGTH = 22;

/**
 * Maximum length of a link, in characters. Internet Explorer and the Outlook versions that use it follow links of up to 2,083
 * characters
 * (https://support.microsoft.com/topic/maximum-url-length-is-2-083-characters-in-internet-explorer-174e7c8a-6666-f4e0-6fd6-908b53c12246).
 */
const MAX_LINK_LENGTH = 2_000;

/** `<email id>.<position or empty>.<time in base 36>` and, for a click, `.<URL in base64url>`. */
const CLAIM = /^(em_[0-9a-z]{26})\.(\d{1,3})?\.([0-9a-z]{1,8})(?:\.([A-Za-z0-9_-]+))?$/;

/**
 * Creates and verifies tokens of tracking links. A token contains its target, so that redirecting needs no database, and a
 * signature, so that it redirects to no other target. It does not expire, since emails are read for years.
 */
export function makeTrackingTokens(secretKey: SecretKeys) {
  const signer = makeSigner(secretKey, 'tracking links', SHORT_SIGNATURE_BYTES);
  const sign = (claim: string) => `${claim}.${signer.sign(claim)}`;
  const open = (token: string) => {
    const claim = token.slice(0, -SIGNATURE_LENGTH - 1);
    const signature = token.slice(claim.length + 1);
    if (token[claim.length] !== '.' || !signer.verify(claim, signature)) return undefined;
    const [, emailId, recipient, sentAt, url] = CLAIM.exec(claim) ?? [];
    if (emailId === undefined || sentAt === undefined) return undefined;
    const email = {
      emailId,
      recipient: recipient === undefined ? null : Number(recipient),
      sentAt: Number.parseInt(sentAt, 36),
    };
    return { email, url: url === undefined ? undefined : Buffer.from(url, 'base64url').toString() };
  };
  return {
    /** Returns the token of the tracking image. */
    makeOpen: (email: TrackedEmail): string => sign(claimOf(email)),
    /** Returns the token of a link. @param url a result of `trackableUrl` */
    makeClick: (email: TrackedEmail, url: string): string =>
      sign(`${claimOf(email)}.${Buffer.from(url).toString('base64url')}`),
    /** Returns undefined for a token that this service has not signed, and for the token of a link. */
    readOpen(token: string): TrackedEmail | undefined {
      const opened = open(token);
      return opened?.url === undefined ? opened?.email : undefined;
    },
    /** Returns undefined for a token that this service has not signed, and for the token of an image. */
    readClick(token: string): TrackedLink | undefined {
      const opened = open(token);
      return opened?.url === undefined ? undefined : { ...opened.email, url: opened.url };
    },
  };
}

function claimOf({ emailId, recipient, sentAt }: TrackedEmail): string {
  return `${emailId}.${recipient ?? ''}.${sentAt.toString(36)}`;
}

/**
 * Returns the URL that a browser requests for the value of an `href` if it is http or https; the value itself if it needs no
 * change (https://url.spec.whatwg.org/#concept-basic-url-parser). Returns undefined for any other value, such as `mailto:`.
 */
export function trackableUrl(href: string): string | undefined {
  const value = href.trim();
  if (!/^https?:\/\/./i.test(value) || !URL.canParse(value)) return undefined;
  return /^[\x21-\x7E]+$/.test(value) ? value : new URL(value).href;
}

/** @returns undefined for a value that is not tracked: another scheme, or a link too long for mail clients */
export function clickUrl(
  publicUrl: string,
  tokens: TrackingTokens,
  email: TrackedEmail,
  href: string,
): string | undefined {
  const url = trackableUrl(href);
  const link = url === undefined ? undefined : `${publicUrl}/t/c/${tokens.makeClick(email, url)}`;
  return link !== undefined && link.length <= MAX_LINK_LENGTH ? link : undefined;
}

export function openUrl(publicUrl: string, tokens: TrackingTokens, email: TrackedEmail): string {
  return `${publicUrl}/t/o/${tokens.makeOpen(email)}`;
}
