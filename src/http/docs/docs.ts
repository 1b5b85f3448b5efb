import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../../domain/errors.ts';
import { makePublic } from '../plugins/auth.ts';
import type { CurrentDescription } from './current-examples.ts';
import { sendError } from '../plugins/errors.ts';

/** The page loads and contacts its own origin only and cannot be framed. Swagger UI sets inline styles. */
const POLICY = {
  'default-src': "'self'",
  'img-src': ["'self'", 'data:'],
  'style-src': ["'self'", "'unsafe-inline'"],
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
  'object-src': "'none'",
};

/** Serves the API description as a page at /docs, where requests can be tried with a key. */
export async function serveDocs(app: FastifyInstance, describeApi: CurrentDescription): Promise<void> {
  // Only missing files of the page get here; other addresses were handled before.
  app.setNotFoundHandler((request, reply) =>
    sendError(new ServiceError('not_found', 'there is nothing at this address'), request, reply),
  );
  await app.register(async (docs) => {
    makePublic(docs);
    docs.addHook('onSend', async (_request, reply) => {
      reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer');
    });
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: POLICY,
      // The policy allows the page's own origin only, which may differ from PUBLIC_URL.
      transformSpecification: () => ({ ...(JSON.parse(describeApi()) as object), servers: [{ url: '/' }] }),
      transformSpecificationClone: false,
      theme: { title: 'Sendwright API' },
      uiConfig: {
        deepLinking: true,
        layout: 'BaseLayout',
        displayRequestDuration: true,
        persistAuthorization: false,
        validatorUrl: null,
      },
    });
  });
}
