import type { FastifyInstance } from 'fastify';

/** Accepts bodies of any content type. @param read converts the raw bytes into the body for handlers */
export function acceptAnyBody(app: FastifyInstance, read: (body: Buffer) => unknown): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, read(body as Buffer));
  });
  app.addHook('onRequest', async ({ headers }) => {
    // Fastify rejects a malformed content type before it selects a parser.
    delete headers['content-type'];
  });
}
