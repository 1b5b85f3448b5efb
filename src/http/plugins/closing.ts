import type { FastifyInstance } from 'fastify';

/**
 * Makes `app.close()` wait for the requests under way and for nothing else. Node by itself would also wait for
 * connections on which nobody has asked anything yet, and keep those that it answers for a next request.
 */
export function closeWithLastAnswer(app: FastifyInstance): void {
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
