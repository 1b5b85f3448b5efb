import type { SwaggerOptions } from '@fastify/swagger';

/** What the API description says besides the routes' own schemas. */
export function openapi(): SwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sendwright',
        description: 'Email that is never lost: sent at once or later, moved, canceled, followed to its end.',
        version: '1',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      components: {
        securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `sw_live_…`' } },
      },
    },
    transform: ({ schema, url, route }) => ({
      schema:
        route.config?.scope === 'public' ? { ...schema, security: [] } : { ...schema, security: [{ apiKey: [] }] },
      url,
    }),
    refResolver: { buildLocalReference: (json) => json['$id'] as string },
  };
}
