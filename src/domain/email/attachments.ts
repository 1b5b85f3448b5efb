import { lookup } from 'mime-types';
import { ATTACHMENT_PATH_LENGTH, CONTENT_ID_LENGTH, CONTENT_TYPE_LENGTH, FILENAME_LENGTH } from '../limits.ts';
import { isBlockedContentType, isBlockedExtension } from './blocked-files.ts';
import { characters, controlProblem } from '../../lib/text.ts';

/** An attachment in a request: interface.md's Attachments field, with exactly one of `content` and `path`. */
export interface AttachmentRequest {
  filename: string;
  /** Base64. */
  content: string | null;
  /** A public URL. */
  path: string | null;
  content_type: string | null;
  content_id: string | null;
}

/** The metadata of a file. `size` in bytes, decoded. */
export interface Attachment {
  id: string;
  filename: string;
  content_type: string;
  size: number;
  content_id: string | null;
}

/** Returns why a file name is malformed, or undefined. A well-formed name may still be blocked by its extension. */
export function filenameProblem(name: string): string | undefined {
  if (name.trim() === '') return 'must not be empty';
  if (characters(name) > FILENAME_LENGTH) return `must be at most ${FILENAME_LENGTH} characters`;
  if (/[/\\]/.test(name)) return 'must be a name without / or \\';
  if (/^\.+$/.test(name)) return 'must be more than dots';
  return controlProblem(name);
}

export function contentIdProblem(id: string): string | undefined {
  if (id === '' || id.length > CONTENT_ID_LENGTH) return `must be 1 to ${CONTENT_ID_LENGTH} characters`;
  return /^[A-Za-z0-9._@-]+$/.test(id) ? undefined : 'may contain only letters, digits, ., _, @ and -';
}

/** Matches a header token (RFC 9110 §5.6.2). A MIME type consists of two. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** Matches a quoted parameter value. Escapes are not supported. */
const QUOTED = /^"[\x20\x21\x23-\x5B\x5D-\x7E]*"$/;

/** Returns why a MIME type is malformed, or undefined. Parameters may follow it: `text/csv; charset=utf-8`. */
export function contentTypeProblem(type: string): string | undefined {
  if (type.length > CONTENT_TYPE_LENGTH) return `must be at most ${CONTENT_TYPE_LENGTH} characters`;
  const [essence = '', ...parameters] = type.split(';');
  const halves = essence.trimEnd().split('/');
  // Tested before trimming, which would remove line breaks.
  const isPrintable = /^[\x20-\x7E]*$/.test(type);
  const isType = halves.length === 2 && halves.every((half) => TOKEN.test(half)) && parameters.every(isParameter);
  if (!isPrintable || !isType) return 'must be a MIME type such as application/pdf';
  // A multipart type declares parts that a file does not have.
  return /^multipart\//i.test(type) ? 'must be the type of one file, not multipart' : undefined;
}

function isParameter(text: string): boolean {
  const equals = text.indexOf('=');
  const value = text.slice(equals + 1).trimEnd();
  return equals > 0 && TOKEN.test(text.slice(0, equals).trimStart()) && (TOKEN.test(value) || QUOTED.test(value));
}

/** Returns why a `path` cannot be parsed as a URL, or undefined. */
export function pathProblem(path: string): string | undefined {
  if (path.length > ATTACHMENT_PATH_LENGTH) return `must be at most ${ATTACHMENT_PATH_LENGTH} characters`;
  // The URL parser would remove control characters and replace lone surrogates.
  return controlProblem(path);
}

/** Returns the MIME type of a file: the type in the request, else the type of its extension. */
export function contentTypeOf(file: Pick<AttachmentRequest, 'filename' | 'content_type'>): string {
  if (file.content_type !== null) return file.content_type;
  const extension = extensionOf(file.filename);
  return (extension !== '' && lookup(extension)) || 'application/octet-stream';
}

/** Matches invisible characters that emoji and some scripts need. */
const JOINERS = /[\u200C\u200D]|\p{Variation_Selector}/gu;
/** Matches other invisible characters and bidirectional formatting, which make one name look like another. */
const INVISIBLE =
  /(?![\u200C\u200D]|\p{Variation_Selector})\p{Default_Ignorable_Code_Point}|[\u0080-\u009F\uFFF9-\uFFFB]/u;

/** Normalizes a name as a recipient's system may display it, with compatibility characters replaced. */
function normalizeName(filename: string): string {
  return filename.replace(JOINERS, '').normalize('NFKC').toLowerCase();
}

/** Returns the last extension of a name in lower case without its dot; empty without one. */
function extensionOf(filename: string): string {
  const name = normalizeName(filename);
  const dot = name.lastIndexOf('.');
  return dot < 0 ? '' : name.slice(dot + 1).trim();
}

/**
 * Returns the field and the reason if a file is refused for its name or type, otherwise undefined. Does not check the
 * content.
 */
export function blockedFile(
  file: Pick<AttachmentRequest, 'filename' | 'content_type'>,
): { field: 'filename' | 'content_type'; message: string } | undefined {
  const message = blockedName(file.filename);
  if (message !== undefined) return { field: 'filename', message };
  if (file.content_type === null || !isBlockedContentType(file.content_type)) return undefined;
  return { field: 'content_type', message: `is of a blocked type (${file.content_type})` };
}

function blockedName(filename: string): string | undefined {
  const name = normalizeName(filename);
  if (INVISIBLE.test(filename)) return 'has invisible characters in its name';
  // Windows removes trailing dots and blanks, which exposes a hidden extension.
  if (/[.\s]$/.test(name)) return 'has a name that ends in a dot or a space';
  // On Windows a colon separates the name of a stream inside the file.
  if (name.includes(':')) return 'has a colon in its name';
  const extension = extensionOf(filename);
  return isBlockedExtension(extension) ? `is of a blocked type (.${extension})` : undefined;
}

/** The first bytes, in hexadecimal, of executables: DOS and Windows, Linux, six forms of macOS, scripts. */
const EXECUTABLE_SIGNATURES = [
  '4d5a',
  '7f454c46',
  'feedface',
  'feedfacf',
  'cefaedfe',
  'cffaedfe',
  'cafebabe',
  'cafebabf',
  '2321',
];

export function blockedContent(content: Uint8Array): string | undefined {
  const start = Buffer.from(content.subarray(0, 4)).toString('hex');
  return EXECUTABLE_SIGNATURES.some((magic) => start.startsWith(magic))
    ? 'contains a program, regardless of its name'
    : undefined;
}

/** Computes the decoded size of valid base64 without decoding it. */
export function decodedSize(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(base64.length / 4) * 3 - padding;
}

/** Characters per decoding step; a multiple of four, so that each step ends at a base64 group. */
const PIECE_LENGTH = 1_048_576;

/**
 * Decodes canonical base64 (RFC 4648 §4, padded); returns undefined for other text. Node's decoder accepts almost anything,
 * so each piece is encoded again and compared.
 * @yields between pieces, so that other work can run
 */
export function* decodeBase64InSteps(text: string): Generator<undefined, Buffer | undefined> {
  if (text.length % 4 !== 0) return undefined;
  const content = Buffer.allocUnsafe(decodedSize(text));
  for (let from = 0, at = 0; from < text.length; from += PIECE_LENGTH) {
    const piece = text.slice(from, from + PIECE_LENGTH);
    const end = at + content.write(piece, at, 'base64');
    const isWhole = end === content.length || end - at === (PIECE_LENGTH / 4) * 3;
    if (!isWhole || content.toString('base64', at, end) !== piece) return undefined;
    at = end;
    yield;
  }
  return content;
}
