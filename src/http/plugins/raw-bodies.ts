import type { FastifyInstance } from 'fastify';

/** Passes bodies to handlers as raw bytes of any content type, since signatures cover the bytes. */
export function keepRawBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body);
  });
  app.addHook('onRequest', async ({ headers }) => {
    // Fastify refuses a malformed content type before it selects a parser.
    delete headers['content-type'];
  });
}
