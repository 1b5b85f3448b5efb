import { createHmac, createSecretKey, hkdfSync, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  type DataKey,
  type EmailContent,
  keyVersion,
  openBody,
  openHeaders,
  sealContent,
  type SealedContent,
} from '../../domain/email/content.ts';
import { makeSeal } from '../../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../../lib/secret-key.ts';
import { findDataKey, insertDataKey } from '../sealing/data-keys.ts';
import type { Db } from '../postgres/pool.ts';

/** The columns in which the content of an email is stored; rows from before encryption have html, text and headers. */
export interface StoredContent extends EmailContent {
  readonly id: string;
  readonly org_id: string;
  readonly sealed_body: Buffer | null;
  readonly sealed_headers: Buffer | null;
}

/** Seals and opens the content of emails. Data keys are cached, so it costs no round trip once a key is known. */
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
  /** Decrypts the content. @throws if that fails, for example because SECRET_KEY has changed */
  readonly open: (db: Db, stored: StoredContent) => Promise<EmailContent>;
  /** Decrypts only the custom headers. */
  readonly openHeaders: (
    db: Db,
    stored: Omit<StoredContent, 'html' | 'text' | 'sealed_body'>,
  ) => Promise<EmailContent['headers']>;
}

const FIRST_VERSION = 1;
const MAX_CACHED_KEYS = 10_000;

/** @param secretKeys the settings `SECRET_KEY` and `SECRET_KEY_OLD`, which wrap the data keys */
export function makeEmailContents(secretKeys: SecretKeys): EmailContents {
  const wrap = makeSeal(deriveKeys(secretKeys, 'data keys'));
  const cache = new LRUCache<string, Promise<DataKey>>({ max: MAX_CACHED_KEYS });

  function cached(name: string, load: () => Promise<DataKey>): Promise<DataKey> {
    const entry = cache.get(name);
    if (entry) return entry;
    const loading = load();
    cache.set(name, loading);
    loading.catch(() => cache.delete(name));
    return loading;
  }

  async function load(db: Db, orgId: string, version: number | null): Promise<DataKey | undefined> {
    const found = await findDataKey(db, orgId, version);
    if (!found) return undefined;
    const key = createSecretKey(wrap.open(found.sealed, aboutDataKey(orgId, found.version)));
    return { version: found.version, key };
  }

  const latestKey = (db: Db, orgId: string) =>
    cached(orgId, async () => {
      const found = await load(db, orgId, null);
      if (found) return found;
      const version = FIRST_VERSION;
      await insertDataKey(db, orgId, { version, sealed: wrap.close(randomBytes(32), aboutDataKey(orgId, version)) });
      // If another process has stored a key first, that one is used.
      const stored = await load(db, orgId, null);
      if (!stored) throw new Error(`the data key of ${orgId} was not stored`);
      return stored;
    });

  const keyOf = async (db: Db, orgId: string, sealed: Buffer) => {
    const version = keyVersion(sealed);
    const { key } = await cached(`${orgId} ${version}`, async () => {
      const found = await load(db, orgId, version);
      if (!found) throw new Error(`there is no data key ${version} of ${orgId}`);
      return found;
    });
    return key;
  };

  /** The key of hashes is always derived from the first data key. */
  const firstKey = async (db: Db, orgId: string) => {
    const name = `${orgId} ${FIRST_VERSION}`;
    if (cache.has(name)) return cache.get(name);
    const found = await load(db, orgId, FIRST_VERSION);
    return found && cached(name, () => Promise.resolve(found));
  };

  const headersOf: EmailContents['openHeaders'] = async (db, { id, org_id: orgId, headers, sealed_headers: sealed }) =>
    sealed ? openHeaders(await keyOf(db, orgId, sealed), id, sealed) : headers;

  return {
    seal: async (db, orgId, emailId, content) => sealContent(await latestKey(db, orgId), emailId, content),
    async prepare(db, orgId) {
      await latestKey(db, orgId);
    },
    async hashAddresses(db, orgId, addresses) {
      const dataKey = await firstKey(db, orgId);
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
  };
}

/** Returns the context that a data key is sealed with. */
function aboutDataKey(orgId: string, version: number): string {
  return `${orgId} ${version}`;
}
