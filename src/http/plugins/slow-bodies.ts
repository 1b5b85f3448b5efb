import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { respondToBrokenRequest } from './errors.ts';

/** The interval between checks of all bodies. */
const CHECK_INTERVAL_MS = 1_000;
/** The rate is not enforced during the first checks, because a connection may start slowly. */
const GRACE_CHECKS = 10;
/** The minimum average bytes per check after the grace period. */
const MIN_BYTES_PER_CHECK = 65_536;

interface Upload {
  readonly request: IncomingMessage;
  /** `bytesRead` of the connection at the start of the body. */
  readonly startBytes: number;
  readonly isEnforced: () => boolean;
  /** The age in checks rather than in time, so that a stalled process does not end uploads. */
  checks: number;
}

/**
 * Enforces a minimum transfer rate. If a body averages less than 64 KiB a second after its first 10 s, the response is 408, as if
 * it had exceeded the server's request timeout, and the connection is closed.
 * @returns a function that watches one body until it has arrived. `isEnforced` returns true while the rate applies to the body
 */
export function endSlowBodies(app: FastifyInstance) {
  const uploads = new Set<Upload>();
  const timer = setInterval(() => {
    for (const upload of uploads) {
      const { request, startBytes, isEnforced } = upload;
      const { socket } = request;
      if (request.complete || socket.destroyed) {
        uploads.delete(upload);
        continue;
      }
      const minBytes = (++upload.checks - GRACE_CHECKS) * MIN_BYTES_PER_CHECK;
      if (socket.bytesRead - startBytes >= minBytes || !isEnforced()) continue;
      uploads.delete(upload);
      respondToBrokenRequest.call(app, { code: 'ERR_HTTP_REQUEST_TIMEOUT' }, socket);
    }
  }, CHECK_INTERVAL_MS).unref();
  app.addHook('onClose', async () => clearInterval(timer));
  return (request: IncomingMessage, isEnforced: () => boolean): void => {
    uploads.add({ request, startBytes: request.socket.bytesRead, isEnforced, checks: 0 });
  };
}
