import type { OidcFlow } from '../accounts/oidc.ts';
import { digest } from '../lib/digest.ts';
import { makeSeal } from '../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';

export const OIDC_SIGN_IN = '/dashboard/sign-in/oidc';
/** The path of the redirect URI. */
export const OIDC_CALLBACK = `${OIDC_SIGN_IN}/callback`;
/** The user must sign in at the identity provider within this time. */
export const OIDC_FLOW_SECONDS = 600;
/** Browsers drop cookies of more than 4,096 bytes. */
const MAX_NEXT_LENGTH = 1_000;
const ABOUT = 'sign-in';

export interface StoredFlow extends OidcFlow {
  /** The page that opens after the sign-in. */
  readonly next: string;
  /** For a flow that links an account: the digest of the token of the session that started it. */
  readonly linkSession?: string | undefined;
  /** Unix time in milliseconds. */
  readonly expiresAt: number;
}

/** Returns the digest that identifies a session in a flow. */
export function sessionDigest(session: { readonly token: string } | null): string | undefined {
  return session ? digest(session.token).toString('base64url') : undefined;
}

/**
 * Seals the secrets of a sign-in at the identity provider in a cookie. Only the browser that started the flow can finish it,
 * and others who see the cookie cannot read the secrets.
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
    /** @returns undefined for a cookie that is missing, forged or expired */
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
