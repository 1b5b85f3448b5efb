import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError } from '../../domain/errors.ts';
import { shortParam, tooLarge } from './errors.ts';
import { startTimeSlices } from '../../intake/time-slices.ts';
import { characters } from '../../lib/text.ts';
import { type LargeJson, LargeJsonReader, NOT_UTF8, PROTOTYPE_KEYS } from './large-json.ts';
import { repeatsHeader } from './repeated-headers.ts';

/** Larger bodies are parsed incrementally while they arrive. Parsing a smaller one takes at most about 20 ms. */
const LARGE_BODY_BYTES = 131_072;

declare module 'fastify' {
  interface FastifyRequest {
    /** The error of a body that is valid JSON but exceeds a limit or has a forbidden key. It is thrown before validation. */
    refusedBody: ServiceError | null;
  }
}

/**
 * Parses JSON bodies strictly: only UTF-8 (RFC 8259 §8.1), and no keys that would change an object's prototype. A route without a
 * body schema accepts an empty body, no body or `{}`, because some clients always send a content type.
 * @param limit the maximum size of a body in bytes
 */
export function readJson(app: FastifyInstance, limit: number): void {
  app.decorateRequest('refusedBody', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: IncomingMessage) => {
    const body = await receive(payload, Math.min(request.routeOptions.bodyLimit, limit));
    const isShort = Buffer.isBuffer(body);
    if (isShort && body.length === 0 && !request.routeOptions.schema?.body) return undefined;
    const json = isShort ? await parseSmallJson(request, body) : body;
    if ('value' in json) return json.value;
    request.refusedBody = new ServiceError('validation_error', json.problem, json.path && shortParam(json.path));
    return null;
  });
  const parse = app.getDefaultJsonParser('error', 'error');
  const parseSmallJson = (request: FastifyRequest, body: Buffer): Promise<LargeJson> =>
    new Promise((resolve, reject) => {
      if (body.length === 0)
        throw new ServiceError('invalid_json', 'the request body is empty; it must be a JSON object');
      if (!isUtf8(body)) throw notUtf8();
      const text = body.toString();
      void parse(request, text, (error, value) => {
        if (!error) resolve(repeatsHeader(text) ? parseAgain(body) : { value });
        else if (isJson(text)) resolve({ path: undefined, problem: PROTOTYPE_KEYS });
        else reject(notJson(placeOf(body)));
      });
    });

  app.addHook('onRequest', async ({ routeOptions, headers }) => {
    // `curl -d ''` and `fetch` send a content type with an empty body, and `curl -H` with none.
    const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
    if (!routeOptions.schema?.body && length === '0' && encoding === undefined) delete headers['content-type'];
  });
  app.addHook('preValidation', async ({ body, routeOptions }) => {
    if (routeOptions.schema?.body && body === undefined) {
      throw new ServiceError('invalid_json', 'the request has no body');
    }
  });
}

/** Refuses compressed bodies, so that size limits apply to the decoded data. */
export function refuseCompression({ method, headers }: FastifyRequest, reply: FastifyReply): void {
  const { 'content-encoding': encoding = 'identity' } = headers;
  if (encoding.toLowerCase() === 'identity' || method === 'GET' || method === 'HEAD') return;
  // RFC 9110 §15.5.16: the response lists the accepted codings.
  reply.header('accept-encoding', 'identity');
  const message = 'the request body must not be compressed; leave out Content-Encoding';
  throw new ServiceError('unsupported_media_type', message);
}

/** Before validation, throws the error that the body parser recorded and refuses fields on routes without a body schema. */
export function refuseBodies(app: FastifyInstance): void {
  app.addHook('preValidation', async ({ body, refusedBody, routeOptions }) => {
    if (refusedBody) throw refusedBody;
    if (!routeOptions.schema?.body && body !== undefined) refuseFields(body);
  });
}

/** Refuses any body except `{}`. */
function refuseFields(body: unknown): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ServiceError('validation_error', 'the request body must be left out or {}');
  }
  const [field] = Object.keys(body);
  if (field !== undefined) throw new ServiceError('validation_error', 'is not a known field', shortParam(field));
}

/**
 * Reads a body to its end. Large bodies are parsed while they arrive. After a syntax error the rest is still read, because the
 * body may also be too large, which takes precedence.
 * @returns the bytes of a small body, or the parsed value of a large one
 */
function receive(payload: IncomingMessage, limit: number): Promise<Buffer | LargeJson> {
  const start: Buffer[] = [];
  let length = 0;
  let reader: LargeJsonReader | undefined;
  let broken: Error | undefined;
  const read = (chunk: Buffer): void => {
    length += chunk.length;
    if (length > limit) throw tooLarge(limit);
    if (broken) return;
    start.push(chunk);
    if (length < LARGE_BODY_BYTES) return;
    reader ??= new LargeJsonReader();
    try {
      for (const piece of start.splice(0)) reader.feed(piece);
    } catch (error) {
      broken = largeProblem(error, reader);
    }
  };
  const result = (): Buffer | LargeJson => {
    if (broken) throw broken;
    if (!reader) return Buffer.concat(start, length);
    try {
      return reader.end();
    } catch (error) {
      throw largeProblem(error, reader);
    }
  };

  const yieldIfDue = startTimeSlices();
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      payload.off('data', onData).off('end', onEnd).off('error', fail);
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      try {
        read(chunk);
      } catch (error) {
        fail(error as Error);
        return;
      }
      const nextSlice = yieldIfDue();
      if (!nextSlice) return;
      payload.pause();
      void nextSlice.then(() => payload.resume());
    };
    const onEnd = (): void => {
      try {
        resolve(result());
      } catch (error) {
        fail(error as Error);
      }
    };
    payload.on('data', onData).on('end', onEnd).on('error', fail);
  });
}

/** @param place the position of the error, such as ` at line 2, character 5` */
function notJson(place: string): ServiceError {
  return new ServiceError('invalid_json', `the request body is not valid JSON${place}`);
}

function notUtf8(): ServiceError {
  return new ServiceError('invalid_json', 'the request body must be UTF-8');
}

/** Returns the position at which JSON.parse fails. */
function placeOf(body: Buffer): string {
  const reader = new LargeJsonReader();
  try {
    reader.feed(body);
    reader.end();
  } catch {
    if (reader.offset === body.length) return ': it ends too early';
    const lines = body.toString('utf8', 0, reader.offset).split('\n');
    return ` at line ${lines.length}, character ${characters(lines.at(-1) ?? '') + 1}`;
  }
  return '';
}

/** Parses a valid body again to find the path of the repeated header. */
function parseAgain(body: Buffer): LargeJson {
  const reader = new LargeJsonReader();
  reader.feed(body);
  return reader.end();
}

/** Converts an error of the incremental parser. It reports a byte offset, because the parser does not count lines. */
function largeProblem(error: unknown, { offset }: LargeJsonReader): Error {
  if (!(error instanceof SyntaxError)) return error as Error;
  return error.message === NOT_UTF8 ? notUtf8() : notJson(` at byte ${offset + 1}`);
}

/** Returns true if Fastify's parser rejected the text only because of a forbidden key. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
