import type { FastifyInstance, FastifyReply } from 'fastify';

/**
 * Makes `app.close()` wait only for requests in progress. Node would also wait for connections without a request, and would keep
 * connections alive after their response.
 */
export function closeAfterLastResponse(app: FastifyInstance): void {
  let isClosing = false;
  let pendingRequests = 0;
  const closeIfIdle = (): void => {
    if (isClosing && pendingRequests === 0) app.server.closeAllConnections();
  };
  app.addHook('preClose', async () => {
    isClosing = true;
    closeIfIdle();
  });
  app.addHook('onRequest', async (_request, reply) => {
    pendingRequests++;
    reply.raw.once('close', () => {
      pendingRequests--;
      closeIfIdle();
    });
  });
  app.addHook('onSend', async (_request, reply) => {
    if (isClosing) reply.header('connection', 'close');
  });
}

/** Calls `release` when the response is sent or the caller disconnects; immediately if that has already happened. */
export function onceClosed({ raw }: FastifyReply, release: () => void): void {
  if (raw.closed) release();
  else raw.once('close', release);
}

/**
 * Returns a signal that aborts when the response is sent or the caller disconnects. Fastify's `request.signal` aborts as soon as
 * the body has been read.
 */
export function makeClosedSignal(reply: FastifyReply): AbortSignal {
  const closed = new AbortController();
  onceClosed(reply, () => closed.abort());
  return closed.signal;
}
