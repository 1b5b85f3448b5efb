import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey } from './secret-key.ts';

/** Bytes of a signature: HMAC-SHA256 cut to 128 bits (RFC 2104 §5). */
const SIGNATURE = 16;

/** `<email id>.<position>.<signature>`, in the only spelling that is given out. */
const TOKEN = /^(em_[0-9a-z]{26})\.(0|[1-9][0-9]{0,2})\.[A-Za-z0-9_-]{22}$/;

/** One recipient of one email, and whose email it is. */
export interface Addressee {
  readonly orgId: string;
  readonly emailId: string;
  /** Counted from 0 over to, cc and bcc, no address twice. */
  readonly position: number;
}

/** What stands in an unsubscribe link: it names a recipient without telling anything about him, and never ends. */
export interface UnsubscribeTokens {
  readonly make: (addressee: Addressee) => string;
  /** Whether a token was made here, for this recipient. Takes the same time whatever is wrong with it. */
  readonly isOf: (addressee: Addressee, token: string) => boolean;
}

/** @param secretKey the setting `SECRET_KEY`, the same in every process */
export function makeUnsubscribeTokens(secretKey: string): UnsubscribeTokens {
  const key = deriveKey(secretKey, 'unsubscribe links');
  const make = ({ orgId, emailId, position }: Addressee): string => {
    const signature = createHmac('sha256', key)
      .update(JSON.stringify([orgId, emailId, position]))
      .digest()
      .subarray(0, SIGNATURE);
    return `${emailId}.${position}.${signature.toString('base64url')}`;
  };
  return {
    make,
    isOf(addressee, token) {
      const [expected, given] = [Buffer.from(make(addressee)), Buffer.from(token)];
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
  };
}

/** Whom a token says that it is of, which may be a lie; undefined when it is no token at all. */
export function claimOf(token: string): Pick<Addressee, 'emailId' | 'position'> | undefined {
  const [, emailId, position] = TOKEN.exec(token) ?? [];
  return emailId !== undefined && position !== undefined ? { emailId, position: Number(position) } : undefined;
}

/**
 * The link of a token.
 * @param publicUrl where the API is reached from outside, without a slash at its end
 */
export function unsubscribeUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/unsubscribe/${token}`;
}
