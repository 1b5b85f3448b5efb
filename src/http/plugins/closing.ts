import type { FastifyInstance } from 'fastify';

/**
 * Makes `app.close()` wait only for requests in progress. Node would also wait for connections without a request, and
 * keep connections alive after their response.
 */
export function closeAfterLastResponse(app: FastifyInstance): void {
  let ending = false;
  let pendingRequests = 0;
  const closeIfIdle = (): void => {
    if (ending && pendingRequests === 0) app.server.closeAllConnections();
  };
  app.addHook('preClose', async () => {
    ending = true;
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
    if (ending) reply.header('connection', 'close');
  });
}
