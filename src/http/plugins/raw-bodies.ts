import type { FastifyInstance } from 'fastify';

/** Gives routes their bodies as the bytes that came, whatever their type: a signature is over those. */
export function keepRaw(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body);
  });
  app.addHook('onRequest', async ({ headers }) => {
    // One that is malformed would be refused before any parser is asked.
    delete headers['content-type'];
  });
}
