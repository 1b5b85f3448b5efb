import type { KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRaw, inflateRawSync } from 'node:zlib';
import { decrypt, encrypt } from '../../lib/seal.ts';

/** The content of an email except its subject. */
export interface EmailContent {
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
}

/** A key that encrypts the content of one organization's messages: 32 bytes. */
export interface DataKey {
  readonly version: number;
  readonly key: KeyObject;
}

export interface SealedContent {
  sealed_body: Buffer;
  /** Bytes of HTML and text in UTF-8. */
  body_bytes: number;
  /** Null when there are no custom headers. */
  sealed_headers: Buffer | null;
}

/**
 * A sealed value is: form (1 byte), version of the data key (4 bytes), nonce (12), tag (16), ciphertext. Form, version, message
 * id and the name of the part are associated data, so a value cannot be moved to another message or part.
 */
const PLAIN = 1;
const DEFLATED = 2;
const PREFIX_BYTES = 5;
/** Size in bytes from which compression saves space. */
const MIN_COMPRESSED_BYTES = 512;
/** Size in bytes from which a value is compressed on another thread. */
const MIN_THREADED_BYTES = 64 * 1_024;
/**
 * Favors speed, with a small window: allocating a 32 kB window costs more than compressing an ordinary body. Results of up to
 * 4,000 bytes use Node's buffer pool.
 */
const DEFLATE = { level: 1, windowBits: 13, memLevel: 6, chunkSize: 4_000 };

type Part = 'body' | 'headers' | 'message';

/** Compresses and encrypts the content of an email. */
export async function sealContent(key: DataKey, emailId: string, content: EmailContent): Promise<SealedContent> {
  const { html, text, headers } = content;
  const hasHeaders = Object.keys(headers).length > 0;
  return {
    sealed_body: await seal(key, emailId, 'body', [html, text]),
    body_bytes: Buffer.byteLength(html ?? '') + Buffer.byteLength(text ?? ''),
    sealed_headers: hasHeaders ? await seal(key, emailId, 'headers', headers) : null,
  };
}

/** @throws if the value belongs to another email, was modified, or was encrypted with another key */
export async function openBody(
  key: KeyObject,
  emailId: string,
  sealed: Buffer,
): Promise<Pick<EmailContent, 'html' | 'text'>> {
  const [html, text] = (await open(key, emailId, 'body', sealed)) as [string | null, string | null];
  return { html, text };
}

/** @throws if the value belongs to another email, was modified, or was encrypted with another key */
export async function openHeaders(key: KeyObject, emailId: string, sealed: Buffer): Promise<Record<string, string>> {
  return (await open(key, emailId, 'headers', sealed)) as Record<string, string>;
}

/** Compresses and encrypts the content of a chat-app message or SMS. */
export function sealMessage(key: DataKey, messageId: string, content: object): Promise<Buffer> {
  return seal(key, messageId, 'message', content);
}

/** @throws if the value belongs to another message, was modified, or was encrypted with another key */
export function openMessage(key: KeyObject, messageId: string, sealed: Buffer): Promise<unknown> {
  return open(key, messageId, 'message', sealed);
}

export function keyVersion(sealed: Buffer): number {
  return sealed.readUInt32BE(1);
}

async function seal({ key, version }: DataKey, messageId: string, part: Part, value: unknown): Promise<Buffer> {
  const json = Buffer.from(JSON.stringify(value));
  const isCompressed = json.length >= MIN_COMPRESSED_BYTES;
  const plain = isCompressed ? await deflate(json) : json;
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt8(isCompressed ? DEFLATED : PLAIN, 0);
  prefix.writeUInt32BE(version, 1);
  return encrypt(key, prefix, plain, associated(prefix, messageId, part));
}

async function open(key: KeyObject, messageId: string, part: Part, sealed: Buffer): Promise<unknown> {
  const form = sealed[0];
  if (form !== PLAIN && form !== DEFLATED) throw new Error('the content has no form that is known here');
  const plain = decrypt(
    key,
    sealed.subarray(PREFIX_BYTES),
    associated(sealed.subarray(0, PREFIX_BYTES), messageId, part),
  );
  return JSON.parse((form === DEFLATED ? await inflate(plain) : plain).toString());
}

function associated(prefix: Buffer, messageId: string, part: Part): Buffer {
  return Buffer.concat([prefix, Buffer.from(`${messageId} ${part}`)]);
}

async function deflate(plain: Buffer): Promise<Buffer> {
  return plain.length < MIN_THREADED_BYTES ? deflateRawSync(plain, DEFLATE) : promisify(deflateRaw)(plain, DEFLATE);
}

async function inflate(compressed: Buffer): Promise<Buffer> {
  return compressed.length < MIN_THREADED_BYTES ? inflateRawSync(compressed) : promisify(inflateRaw)(compressed);
}
