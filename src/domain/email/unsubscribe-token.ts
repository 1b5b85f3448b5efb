import type { SecretKeys } from '../../lib/secret-key.ts';
import { makeSigner, SHORT_SIGNATURE_BYTES } from '../../lib/signer.ts';

/** `<email id>.<position>.<signature>` in canonical form. */
const TOKEN = /^(em_[0-9a-z]{26})\.(0|[1-9][0-9]{0,2})\.[A-Za-z0-9_-]{22}$/;

/** One recipient of one email, and its organization. */
interface Addressee {
  readonly orgId: string;
  readonly emailId: string;
  /** The recipient's position, counted from 0 over to, cc and bcc without duplicates. */
  readonly position: number;
}

export type UnsubscribeTokens = ReturnType<typeof makeUnsubscribeTokens>;

/**
 * Creates and verifies tokens of unsubscribe links. A token identifies a recipient without containing the address and does
 * not expire.
 */
export function makeUnsubscribeTokens(secretKey: SecretKeys) {
  const signer = makeSigner(secretKey, 'unsubscribe links', SHORT_SIGNATURE_BYTES);
  const signed = ({ orgId, emailId, position }: Addressee) => JSON.stringify([orgId, emailId, position]);
  return {
    make: (addressee: Addressee): string =>
      `${addressee.emailId}.${addressee.position}.${signer.sign(signed(addressee))}`,
    /** True if a token is valid for the recipient. */
    verify(addressee: Addressee, token: string): boolean {
      const prefix = `${addressee.emailId}.${addressee.position}.`;
      return token.startsWith(prefix) && signer.verify(signed(addressee), token.slice(prefix.length));
    },
  };
}

/** Parses the recipient of a token without verifying it; returns undefined for malformed text. */
export function parseUnsubscribeToken(token: string): Pick<Addressee, 'emailId' | 'position'> | undefined {
  const [, emailId, position] = TOKEN.exec(token) ?? [];
  return emailId !== undefined && position !== undefined ? { emailId, position: Number(position) } : undefined;
}

export function unsubscribeUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/unsubscribe/${token}`;
}
