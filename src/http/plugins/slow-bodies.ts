import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { respondToBrokenRequest } from './errors.ts';

/** Milliseconds between two checks of all bodies. */
const CHECK_INTERVAL_MS = 1_000;
/** Checks before the rate is enforced: a connection may start slowly. */
const GRACE_CHECKS = 10;
/** Bytes per check that a body must average after the grace period. */
const MIN_BYTES_PER_CHECK = 65_536;

interface Upload {
  readonly request: IncomingMessage;
  /** `bytesRead` of the connection when the body began. */
  readonly startBytes: number;
  readonly isEnforced: () => boolean;
  /** Time is counted in checks, so a stalled process does not blame its clients. */
  checks: number;
}

/**
 * Enforces a minimum transfer rate. A body that averages less than 64 KiB a second after its first 10 s gets 408, as if it
 * had exceeded the server's request timeout, and its connection is closed.
 * @returns a function that watches one body until it has arrived; each second `isEnforced` returns whether the rate applies
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
