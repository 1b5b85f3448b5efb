import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey } from './secret-key.ts';

/** Seconds for which a link is good. */
export const LINK_LIFE = 3_600;

/** Links to files that work without an API key, for as long as they say. */
export interface DownloadLinks {
  /**
   * The path and query of a link.
   * @param expires Unix seconds
   */
  readonly make: (emailId: string, attachmentId: string, expires: number) => string;
  /** When a link ends, in Unix seconds; undefined when it is not one that was made here. */
  readonly read: (emailId: string, attachmentId: string, query: LinkQuery) => number | undefined;
}

interface LinkQuery {
  readonly expires: string;
  readonly signature: string;
}

/** @param secretKey the setting `SECRET_KEY` */
export function makeDownloadLinks(secretKey: string): DownloadLinks {
  const key = deriveKey(secretKey, 'download links');
  const sign = (...parts: [emailId: string, attachmentId: string, expires: string]): string =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url');

  return {
    make(emailId, attachmentId, expires) {
      const query = new URLSearchParams({
        expires: String(expires),
        signature: sign(emailId, attachmentId, String(expires)),
      });
      return `/v1/emails/${emailId}/attachments/${attachmentId}/download?${query.toString()}`;
    },
    read(emailId, attachmentId, { expires, signature }) {
      const expected = Buffer.from(sign(emailId, attachmentId, expires));
      const given = Buffer.from(signature);
      return given.length === expected.length && timingSafeEqual(given, expected) ? Number(expires) : undefined;
    },
  };
}
