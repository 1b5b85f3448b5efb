import { createHmac, createSecretKey, hkdfSync } from 'node:crypto';
import type { ChatContent } from '../../domain/chat/chat.ts';
import {
  type EmailContent,
  keyVersion,
  openBody,
  openHeaders,
  openMessage,
  sealContent,
  type SealedContent,
  sealMessage,
} from '../../domain/email/content.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';
import { makeKeyRing } from '../sealing/key-ring.ts';
import type { Db } from '../postgres/pool.ts';

/** The columns in which the content of an email is stored; rows from before encryption have html, text and headers. */
export interface StoredContent extends EmailContent {
  readonly id: string;
  readonly org_id: string;
  readonly sealed_body: Buffer | null;
  readonly sealed_headers: Buffer | null;
}

/** The columns in which the content of a chat-app message or SMS is stored. */
export interface StoredMessageContent {
  readonly id: string;
  readonly org_id: string;
  /** The content of rows from before encryption; otherwise null. */
  readonly content: ChatContent | null;
  readonly sealed_content: Buffer | null;
}

/** The content of a message whose content was erased. */
const ERASED: ChatContent = { text: null, preview_url: false, template: null, image: null, document: null };

/** Seals and opens the content of messages. Data keys are cached, so it costs no round trip once a key is known. */
export interface EmailContents {
  /**
   * Encrypts with the organization's data key; creates that key for the organization's first email.
   * @param db not a transaction: a key that is rolled back must not have encrypted anything
   */
  readonly seal: (db: Db, orgId: string, emailId: string, content: EmailContent) => Promise<SealedContent>;
  /** Caches the organization's data key, so that sealing within a transaction needs no other connection. */
  readonly prepare: (db: Db, orgId: string) => Promise<void>;
  /**
   * Returns keyed hashes of addresses, which identify erased recipients; null if the organization has no data key and therefore
   * no erased recipients. They do not depend on SECRET_KEY.
   */
  readonly hashAddresses: (db: Db, orgId: string, addresses: readonly string[]) => Promise<Buffer[] | null>;
  /** Encrypts the content of a chat-app message or SMS. @param db not a transaction, as for `seal` */
  readonly sealMessage: (db: Db, orgId: string, messageId: string, content: object) => Promise<Buffer>;
  /** Decrypts the content of a chat-app message or SMS; empty content if it was erased. @throws as `open` */
  readonly openMessage: (db: Db, stored: StoredMessageContent) => Promise<ChatContent>;
  /** Decrypts the content. @throws if that fails, for example because SECRET_KEY has changed */
  readonly open: (db: Db, stored: StoredContent) => Promise<EmailContent>;
  /** Decrypts only the custom headers. */
  readonly openHeaders: (
    db: Db,
    stored: Omit<StoredContent, 'html' | 'text' | 'sealed_body'>,
  ) => Promise<EmailContent['headers']>;
}

/** The body and the headers. */
const SEALS_PER_EMAIL = 2;

/** @param secretKeys the settings `SECRET_KEY` and `SECRET_KEY_OLD`, which wrap the data keys */
export function makeEmailContents(secretKeys: SecretKeys): EmailContents {
  const keys = makeKeyRing(secretKeys);
  const keyOf = async (db: Db, orgId: string, sealed: Buffer) =>
    (await keys.ofVersion(db, orgId, keyVersion(sealed))).key;

  const headersOf: EmailContents['openHeaders'] = async (db, { id, org_id: orgId, headers, sealed_headers: sealed }) =>
    sealed ? openHeaders(await keyOf(db, orgId, sealed), id, sealed) : headers;

  return {
    seal: async (db, orgId, emailId, content) =>
      sealContent(await keys.latest(db, orgId, SEALS_PER_EMAIL), emailId, content),
    async prepare(db, orgId) {
      await keys.latest(db, orgId, 0);
    },
    async hashAddresses(db, orgId, addresses) {
      const dataKey = await keys.first(db, orgId);
      if (!dataKey) return null;
      const derived = hkdfSync('sha256', dataKey.key, '', 'sendwright erased recipients', 32);
      const key = createSecretKey(Buffer.from(derived));
      return addresses.map((address) => createHmac('sha256', key).update(address).digest());
    },
    async open(db, stored) {
      const { id, org_id: orgId, html, text, sealed_body: sealed } = stored;
      const body = sealed ? await openBody(await keyOf(db, orgId, sealed), id, sealed) : { html, text };
      return { html: body.html, text: body.text, headers: await headersOf(db, stored) };
    },
    openHeaders: headersOf,
    sealMessage: async (db, orgId, messageId, content) =>
      sealMessage(await keys.latest(db, orgId, 1), messageId, content),
    async openMessage(db, { id, org_id: orgId, content, sealed_content: sealed }) {
      if (!sealed) return content ?? ERASED;
      return (await openMessage(await keyOf(db, orgId, sealed), id, sealed)) as ChatContent;
    },
  };
}
