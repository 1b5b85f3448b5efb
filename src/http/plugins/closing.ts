import type { FastifyInstance } from 'fastify';

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
