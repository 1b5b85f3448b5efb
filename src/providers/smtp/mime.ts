import * as base64 from 'nodemailer/lib/base64';
import type MimeNode from 'nodemailer/lib/mime-node';
import * as qp from 'nodemailer/lib/qp';

/** A multiple of 57 bytes, which base64 encodes as a line of 76 characters. */
const PIECE_BYTES = 57 * 1_024;

/**
 * Serializes a message (RFC 5322, RFC 2045) in pieces of 58 kB; the last one is shorter. It is faster than nodemailer's stream
 * (decision 142). Its parts must be strings or buffers.
 * @returns the bytes before dot-stuffing; line breaks of text stay as they are, and the last one may be missing
 */
export function* serialize(message: MimeNode): Generator<Buffer> {
  let rest = Buffer.alloc(0);
  for (const part of partsOf(message)) {
    const bytes = Buffer.concat([rest, toBytes(part)]);
    const whole = bytes.length - (bytes.length % PIECE_BYTES);
    for (let start = 0; start < whole; start += PIECE_BYTES) yield bytes.subarray(start, start + PIECE_BYTES);
    rest = bytes.subarray(whole);
  }
  yield rest;
}

function* partsOf(node: MimeNode): Generator<string | Buffer> {
  yield `${node.buildHeaders()}\r\n\r\n`;
  if (!node.multipart) {
    yield* contentOf(node);
    return;
  }
  for (const [index, child] of node.childNodes.entries()) {
    yield `${index === 0 ? '' : '\r\n'}--${node.boundary}\r\n`;
    yield* partsOf(child);
  }
  yield `\r\n--${node.boundary}--\r\n`;
}

function* contentOf(node: MimeNode): Generator<string | Buffer> {
  const content = node.content as string | Buffer;
  const encoding = node.getTransferEncoding();
  if (encoding === 'quoted-printable') yield qp.wrap(qp.encode(content));
  else if (encoding !== 'base64') yield content;
  else {
    const bytes = toBytes(content);
    for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
      yield `${start === 0 ? '' : '\r\n'}${base64.wrap(base64.encode(bytes.subarray(start, start + PIECE_BYTES)))}`;
    }
  }
}

function toBytes(content: string | Buffer): Buffer {
  return typeof content === 'string' ? Buffer.from(content) : content;
}
