import type { SwaggerOptions } from '@fastify/swagger';
import { describeErrors } from './error-docs.ts';
import { describeEvents } from './event-docs.ts';
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
          'answer an `X-Request-Id` to ask about. While an organization’s requests or emails are limited, every answer to ' +
          'a good key says in `RateLimit-…` headers what is left.',
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
        { name: 'API keys', description: 'Who may call, and what each may do' },
        { name: 'Health', description: 'For load balancers' },
      ],
      webhooks: describeEvents(),
      components: {
        headers: HEADERS,
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
  headers?: Record<string, { $ref: string }>;
}
interface Operation {
  readonly requestBody?: Part;
  readonly responses: Record<string, Part>;
  readonly security?: readonly unknown[];
}
type Paths = Record<string, Record<string, Operation>>;

const whole = (description: string) => ({ description, schema: { type: 'integer' as const, minimum: 0 } });

/** Headers of answers, besides those that every HTTP server gives. */
const HEADERS = {
  'X-Request-Id': { description: 'Names the request in our log', schema: { type: 'string' as const } },
  'RateLimit-Limit': whole('Requests that may be made at once after a pause; of an answer 429 about emails: emails'),
  'RateLimit-Remaining': whole('How many of them may be made now'),
  'RateLimit-Reset': whole('Seconds until all of them may be made again'),
  'RateLimit-Policy': {
    description: 'Every limit that is on: how many, and in how many seconds they come in',
    schema: { type: 'string' as const },
    example: '20000;w=2;comment="requests", 200000;w=20;comment="emails"',
  },
  'Retry-After': whole('Seconds after which to try again'),
};

/** Which headers an answer has, of a status, on an operation that needs a key or does not. */
function headersOf(status: number, needsKey: boolean): Record<string, { $ref: string }> {
  const limits = needsKey && status !== 401 ? Object.keys(HEADERS).filter((name) => name.startsWith('RateLimit-')) : [];
  const names = ['X-Request-Id', ...limits, ...(status === 429 || status === 503 ? ['Retry-After'] : [])];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const SUCCESSES: Readonly<Record<string, string>> = { 200: 'Done', 201: 'Made', 202: 'Accepted', 204: 'Removed' };

/** Adds examples, and says what each answer means. */
function complete(paths: Paths): void {
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { requestBody, responses, security }] of Object.entries(methods)) {
      const operation = `${method.toUpperCase()} ${path}`;
      const example = EXAMPLES[operation];
      const body = requestBody?.content?.['application/json'];
      if (body && example?.request !== undefined) body.example = example.request;
      for (const [status, response] of Object.entries(responses)) {
        const media = response.content?.['application/json'];
        response.headers = headersOf(Number(status), security?.length !== 0);
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
