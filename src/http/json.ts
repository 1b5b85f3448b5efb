import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../domain/errors.ts';

/**
 * Reads JSON bodies strictly: UTF-8 only (RFC 8259 §8.1), no keys that would reach an object's prototype. A route
 * without a body schema takes an empty body, or none, or `{}`: some clients always send a content type.
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
    void parse(request, body.toString(), (error, value) => {
      if (error) done(toProblem(error));
      else done(null, value);
    });
  });
  const parse = app.getDefaultJsonParser('error', 'error');

  app.addHook('preValidation', async (request) => {
    if (request.routeOptions.schema?.body && request.body === undefined) {
      throw new ServiceError('invalid_json', 'the request has no body');
    }
  });
}

function toProblem(error: Error): ServiceError {
  return error.message.includes('forbidden prototype property')
    ? new ServiceError('validation_error', 'the request body must not hold keys that reach an object prototype')
    : new ServiceError('invalid_json', 'the request body is not valid JSON');
}
