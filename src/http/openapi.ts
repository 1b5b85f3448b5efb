import type { SwaggerOptions } from '@fastify/swagger';
import { describeErrors } from './error-docs.ts';
import { EXAMPLES } from './examples.ts';

/** What the API description says besides the routes' own schemas. */
export function openapi(): SwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sendwright',
        description:
          'Email that is never lost: sent at once or later, moved, canceled, followed to its end.\n\n' +
          'Every request names an API key. Timestamps are UTC with milliseconds. Every error has one form, and every ' +
          'answer an `X-Request-Id` to ask about.',
        version: '1',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: [
        { name: 'Emails', description: 'Send an email, follow it, and move or cancel one that is scheduled' },
        { name: 'Batches', description: 'Up to 10,000 emails in one request' },
        { name: 'Attachments', description: 'Files that went along' },
        { name: 'Chat-app messages', description: 'Send a WhatsApp message and follow it' },
        { name: 'Chat-app numbers', description: 'Numbers that chat-app messages come from' },
        { name: 'Domains', description: 'Domains that email is sent from, and what belongs into their DNS' },
        { name: 'Suppressions', description: 'Addresses to which nothing is sent any more' },
        { name: 'Webhooks', description: 'Endpoints of yours that are told what happens' },
        { name: 'Health', description: 'For load balancers' },
      ],
      components: {
        securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `sw_live_…`' } },
      },
    },
    transform: ({ schema, url, route }) => ({
      schema:
        route.config?.scope === 'public' ? { ...schema, security: [] } : { ...schema, security: [{ apiKey: [] }] },
      url,
    }),
    transformObject: (made) => {
      if (!('openapiObject' in made)) throw new Error('this API is described in OpenAPI 3');
      complete(made.openapiObject.paths as Paths);
      return made.openapiObject;
    },
    refResolver: { buildLocalReference: (json) => json['$id'] as string },
  };
}

/** The parts of a description that are completed. */
interface Media {
  readonly schema?: { readonly format?: string };
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}
interface Part {
  description?: string;
  content?: Record<string, Media>;
}
type Paths = Record<string, Record<string, { requestBody?: Part; responses: Record<string, Part> }>>;

const SUCCESSES: Readonly<Record<string, string>> = { 200: 'Done', 201: 'Made', 202: 'Accepted', 204: 'Removed' };

/** Adds examples, and says what each answer means. */
function complete(paths: Paths): void {
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { requestBody, responses }] of Object.entries(methods)) {
      const operation = `${method.toUpperCase()} ${path}`;
      const example = EXAMPLES[operation];
      const body = requestBody?.content?.['application/json'];
      if (body && example?.request !== undefined) body.example = example.request;
      for (const [status, response] of Object.entries(responses)) {
        const media = response.content?.['application/json'];
        if (Number(status) < 400) {
          response.description = SUCCESSES[status] ?? response.description ?? '';
          if (media && example) media.example = example.answer;
          // Schemas say nothing of media types, and the describer takes every answer for JSON.
          if (media?.schema?.format === 'binary') response.content = { 'application/octet-stream': media };
        } else {
          const { description, examples } = describeErrors(operation, Number(status));
          response.description = description;
          if (media) media.examples = examples;
        }
      }
    }
  }
}
