import { lookup } from 'mime-types';
import { ATTACHMENT_PATH_LENGTH, CONTENT_ID_LENGTH, CONTENT_TYPE_LENGTH, FILENAME_LENGTH } from '../limits.ts';
import { blockedContentType, blockedExtension } from './blocked-files.ts';
import { characters, controlProblem } from '../../lib/text.ts';

/** A file as a request gives it: interface.md's Attachments field, with exactly one of `content` and `path`. */
export interface AttachmentRequest {
  filename: string;
  /** Base64. */
  content: string | null;
  /** A public URL. */
  path: string | null;
  content_type: string | null;
  content_id: string | null;
}

/** What is kept of a file besides its content. `size` in bytes, decoded. */
export interface Attachment {
  id: string;
  filename: string;
  content_type: string;
  size: number;
  content_id: string | null;
}

/** What is wrong with a name of a file, if anything. A name that is well formed may still be a blocked one. */
export function filenameProblem(name: string): string | undefined {
  if (name.trim() === '') return 'must not be empty';
  if (characters(name) > FILENAME_LENGTH) return `must be at most ${FILENAME_LENGTH} characters`;
  if (/[/\\]/.test(name)) return 'must be a name without / or \\';
  if (/^\.+$/.test(name)) return 'must be more than dots';
  return controlProblem(name);
}

/** What is wrong with a content id, if anything. */
export function contentIdProblem(id: string): string | undefined {
  if (id === '' || id.length > CONTENT_ID_LENGTH) return `must be 1 to ${CONTENT_ID_LENGTH} characters`;
  return /^[A-Za-z0-9._@-]+$/.test(id) ? undefined : 'may hold only letters, digits, ., _, @ and -';
}

/** One word of a header (RFC 9110 §5.6.2), as MIME types are made of. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** A parameter's value in quotes, without escapes: nobody writes them. */
const QUOTED = /^"[\x20\x21\x23-\x5B\x5D-\x7E]*"$/;

/** What is wrong with a MIME type, if anything. Parameters may follow it: `text/csv; charset=utf-8`. */
export function contentTypeProblem(type: string): string | undefined {
  if (type.length > CONTENT_TYPE_LENGTH) return `must be at most ${CONTENT_TYPE_LENGTH} characters`;
  const [essence = '', ...parameters] = type.split(';');
  const halves = essence.trimEnd().split('/');
  // First, since trimming would take line breaks for blanks.
  const isPrintable = /^[\x20-\x7E]*$/.test(type);
  const isType = halves.length === 2 && halves.every((half) => TOKEN.test(half)) && parameters.every(isParameter);
  if (!isPrintable || !isType) return 'must be a MIME type such as application/pdf';
  // It would promise parts inside that a file does not have.
  return /^multipart\//i.test(type) ? 'must be the type of one file, not multipart' : undefined;
}

function isParameter(text: string): boolean {
  const equals = text.indexOf('=');
  const value = text.slice(equals + 1).trimEnd();
  return equals > 0 && TOKEN.test(text.slice(0, equals).trimStart()) && (TOKEN.test(value) || QUOTED.test(value));
}

/** What is wrong with a `path` that nobody should try to read as a URL, if anything. */
export function pathProblem(path: string): string | undefined {
  if (path.length > ATTACHMENT_PATH_LENGTH) return `must be at most ${ATTACHMENT_PATH_LENGTH} characters`;
  // The parser of URLs would drop the ones and put something else in place of the others.
  return controlProblem(path);
}

/** The MIME type of a file: what the request says, else what its name says. */
export function contentTypeOf(file: Pick<AttachmentRequest, 'filename' | 'content_type'>): string {
  if (file.content_type !== null) return file.content_type;
  const extension = extensionOf(file.filename);
  return (extension !== '' && lookup(extension)) || 'application/octet-stream';
}

/** Characters without a shape of their own that emoji and some scripts need; nobody sees them in an extension. */
const JOINERS = /[\u200C\u200D]|\p{Variation_Selector}/gu;
/** All others of that kind, and bidirectional formatting: they make one name look like another. */
const INVISIBLE =
  /(?![\u200C\u200D]|\p{Variation_Selector})\p{Default_Ignorable_Code_Point}|[\u0080-\u009F\uFFF9-\uFFFB]/u;

/** A name as a recipient's system may read it: compatibility characters are what they look like. */
function readName(filename: string): string {
  return filename.replace(JOINERS, '').normalize('NFKC').toLowerCase();
}

/** The last extension of a name without its dot, in lower case; empty when it has none. */
function extensionOf(filename: string): string {
  const name = readName(filename);
  const dot = name.lastIndexOf('.');
  return dot < 0 ? '' : name.slice(dot + 1).trim();
}

/** Why a file is refused for its name or type, whatever it holds; says which field is at fault. */
export function blockedFile(
  file: Pick<AttachmentRequest, 'filename' | 'content_type'>,
): { field: 'filename' | 'content_type'; message: string } | undefined {
  const message = blockedName(file.filename);
  if (message !== undefined) return { field: 'filename', message };
  if (file.content_type === null || !blockedContentType(file.content_type)) return undefined;
  return { field: 'content_type', message: `is of a blocked type (${file.content_type})` };
}

function blockedName(filename: string): string | undefined {
  const name = readName(filename);
  if (INVISIBLE.test(filename)) return 'has invisible characters in its name';
  // Windows drops both from the end of a name, and with them goes what hid its extension.
  if (/[.\s]$/.test(name)) return 'has a name that ends in a dot or a space';
  // What follows a colon names a stream inside the file there.
  if (name.includes(':')) return 'has a colon in its name';
  const extension = extensionOf(filename);
  return blockedExtension(extension) ? `is of a blocked type (.${extension})` : undefined;
}

/** How programs begin, whatever their name: DOS and Windows, Linux, macOS in its six spellings, scripts. */
const MAGIC: readonly (readonly number[])[] = [
  [0x4d, 0x5a],
  [0x7f, 0x45, 0x4c, 0x46],
  [0xfe, 0xed, 0xfa, 0xce],
  [0xfe, 0xed, 0xfa, 0xcf],
  [0xce, 0xfa, 0xed, 0xfe],
  [0xcf, 0xfa, 0xed, 0xfe],
  [0xca, 0xfe, 0xba, 0xbe],
  [0xca, 0xfe, 0xba, 0xbf],
  [0x23, 0x21],
];

/** Why a file is refused for what it holds. */
export function blockedContent(content: Uint8Array): string | undefined {
  const isProgram = MAGIC.some((magic) => magic.every((byte, index) => content[index] === byte));
  return isProgram ? 'holds a program, whatever its name' : undefined;
}

/** Bytes that a base64 text stands for, when it is one: known before it is decoded. */
export function decodedSize(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(base64.length / 4) * 3 - padding;
}

/** Characters that are decoded at a time; divides by four, so that the pieces fit together. */
const PIECE = 1_048_576;

/**
 * Decodes base64 in its one canonical form (RFC 4648 §4, with padding and nothing else); undefined when it is not that.
 * Node's decoder takes nearly everything, so what it makes of each piece is encoded again and compared.
 * @yields between two pieces, so that others can have their turn
 */
export function* decodingBase64(text: string): Generator<undefined, Buffer | undefined> {
  if (text.length % 4 !== 0) return undefined;
  const content = Buffer.allocUnsafe(decodedSize(text));
  for (let from = 0, at = 0; from < text.length; from += PIECE) {
    const piece = text.slice(from, from + PIECE);
    const end = at + content.write(piece, at, 'base64');
    const isWhole = end === content.length || end - at === (PIECE / 4) * 3;
    if (!isWhole || content.toString('base64', at, end) !== piece) return undefined;
    at = end;
    yield;
  }
  return content;
}
