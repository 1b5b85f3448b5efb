import type { OidcFlow } from '../accounts/oidc.ts';
import { digest } from '../lib/digest.ts';
import { makeSeal } from '../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';

export const OIDC_SIGN_IN = '/dashboard/sign-in/oidc';
/** The path of the redirect URI. */
export const OIDC_CALLBACK = `${OIDC_SIGN_IN}/callback`;
/** The time that a user has to sign in at the issuer. */
export const OIDC_FLOW_SECONDS = 600;
/** Browsers drop cookies of more than 4,096 bytes. */
const MAX_NEXT_LENGTH = 1_000;
const ABOUT = 'sign-in';

export interface StoredFlow extends OidcFlow {
  /** The page to open after the sign-in. */
  readonly next: string;
  /** For a flow that links an account: the digest of the token of the session that began it. */
  readonly linkSession?: string | undefined;
  /** Unix time in milliseconds. */
  readonly expiresAt: number;
}

/** Identifies a session in a flow. */
export function sessionDigest(session: { readonly token: string } | null): string | undefined {
  return session ? digest(session.token).toString('base64url') : undefined;
}

/**
 * Seals the secrets of a sign-in at the issuer for a cookie, so that only the browser that began it can finish it, and other
 * readers of the cookie learn nothing.
 */
export function makeFlowCookie(secretKeys: SecretKeys) {
  const seal = makeSeal(deriveKeys(secretKeys, 'OIDC sign-ins'));
  return {
    write(flow: OidcFlow, next: string, now: number, linkSession?: string): string {
      const stored: StoredFlow = {
        ...flow,
        next: next.length > MAX_NEXT_LENGTH ? '/dashboard' : next,
        linkSession,
        expiresAt: now + OIDC_FLOW_SECONDS * 1_000,
      };
      return seal.close(Buffer.from(JSON.stringify(stored)), ABOUT).toString('base64url');
    },
    /** @returns undefined for a cookie that is missing, forged or has expired */
    read(cookie: string | undefined, now: number): StoredFlow | undefined {
      try {
        const opened = seal.open(Buffer.from(cookie ?? '', 'base64url'), ABOUT);
        const flow = JSON.parse(opened.toString()) as StoredFlow;
        return flow.expiresAt > now ? flow : undefined;
      } catch {
        return undefined;
      }
    },
  };
}
