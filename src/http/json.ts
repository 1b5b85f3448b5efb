import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../domain/errors.ts';
import { shortParam } from './errors.ts';

/**
 * Reads JSON bodies strictly: UTF-8 only (RFC 8259 §8.1), no keys that would reach an object's prototype. A route
 * without a body schema takes an empty body, or none, or `{}`, since some clients always send a content type.
 */
export function readJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (body.length === 0 && !request.routeOptions.schema?.body) {
      done(null, undefined);
      return;
    }
    if (!isUtf8(body)) {
      done(new ServiceError('invalid_json', 'the request body is not UTF-8'));
      return;
    }
    const text = body.toString();
    void parse(request, text, (error, value) => {
      if (error) done(toProblem(text));
      else done(null, value);
    });
  });
  const parse = app.getDefaultJsonParser('error', 'error');

  app.addHook('onRequest', async ({ routeOptions, headers }) => {
    // `curl -d ''` and `fetch` give an empty body a type of their own.
    if (!routeOptions.schema?.body && headers['content-length'] === '0') delete headers['content-type'];
  });
  app.addHook('preValidation', async (request) => {
    const { body } = request;
    if (request.routeOptions.schema?.body) {
      if (body === undefined) throw new ServiceError('invalid_json', 'the request has no body');
    } else if (body !== undefined) {
      refuseFields(body);
    }
  });
}

/** Of a body where none is asked for. */
function refuseFields(body: unknown): void {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ServiceError('validation_error', 'the request body must be left out or {}');
  }
  const [field] = Object.keys(body);
  if (field !== undefined) throw new ServiceError('validation_error', 'is not a known field', shortParam(field));
}

/** What Fastify's parser refuses is no JSON, or JSON with a key that it will not have. */
function toProblem(text: string): ServiceError {
  try {
    JSON.parse(text);
  } catch {
    return new ServiceError('invalid_json', 'the request body is not valid JSON');
  }
  return new ServiceError(
    'validation_error',
    'the request body must not hold a key __proto__, or prototype in constructor',
  );
}
