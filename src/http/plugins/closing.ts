import type { FastifyInstance } from 'fastify';

/**
 * Makes `app.close()` wait only for requests in progress. Node would also wait for connections without a request, and
 * keep connections alive after their response.
 */
export function closeAfterLastResponse(app: FastifyInstance): void {
  let ending = false;
  let underWay = 0;
  const hangUp = (): void => {
    if (ending && underWay === 0) app.server.closeAllConnections();
  };
  app.addHook('preClose', async () => {
    ending = true;
    hangUp();
  });
  app.addHook('onRequest', async (_request, reply) => {
    underWay++;
    reply.raw.once('close', () => {
      underWay--;
      hangUp();
    });
  });
  app.addHook('onSend', async (_request, reply) => {
    if (ending) reply.header('connection', 'close');
  });
}
