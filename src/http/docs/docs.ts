import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { ServiceError } from '../../domain/errors.ts';
import { openToAll } from '../plugins/auth.ts';
import type { CurrentDescription } from './current-examples.ts';
import { sendError } from '../plugins/errors.ts';

/** Everything comes from here, nothing is sent elsewhere, and nobody may frame it. The page styles its own elements. */
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
  // A file that the page does not have; other addresses have been answered before.
  app.setNotFoundHandler((request, reply) =>
    sendError(new ServiceError('not_found', 'there is nothing at this address'), request, reply),
  );
  await app.register(async (docs) => {
    openToAll(docs);
    docs.addHook('onSend', async (_request, reply) => {
      reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer');
    });
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      staticCSP: POLICY,
      // The page may call only the address it was loaded from, which need not be PUBLIC_URL.
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
