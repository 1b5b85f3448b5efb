import type { SwaggerOptions } from '@fastify/swagger';
import { describeErrors } from './errors.ts';
import { describeEvents } from './events.ts';
import { EXAMPLES } from './examples.ts';
import { type Describable, nameSchemas } from './openapi-schemas.ts';

/** Tags of operations, with the prefix of their paths and a description. */
const TAGS: readonly (readonly [name: string, start: string, description: string])[] = [
  ['Emails', '/v1/emails', 'Send an email, follow it, and reschedule or cancel a scheduled one'],
  ['Batches', '/v1/emails/batch', 'Up to 10,000 emails in one request'],
  ['Attachments', '/v1/emails/:id/attachments', 'Files that were sent with an email'],
  ['Chat-app messages', '/v1/chatapp', 'Send a WhatsApp message and follow it'],
  ['Chat-app numbers', '/v1/chatapp/numbers', 'Numbers from which chat-app messages are sent'],
  ['SMS', '/v1/sms', 'Text messages, and the numbers that they come from'],
  ['Statistics', '/v1/stats', 'Counts and rates, by hour or day'],
  ['Domains', '/v1/domains', 'Domains that email is sent from, and their DNS records'],
  ['Suppressions', '/v1/suppressions', 'The suppression list: addresses to which nothing is sent'],
  ['Erasures', '/v1/erasures', 'Erase the personal data of a recipient'],
  ['Webhooks', '/v1/webhooks', 'Your endpoints, to which events are posted'],
  ['API keys', '/v1/keys', 'Keys to this API, and what each of them allows'],
  ['API requests', '/v1/requests', 'The log of requests to this API'],
  ['Health', '/', 'For load balancers'],
];

/** Returns the tag of an operation: the one with the longest matching prefix. */
function tagOf(url: string): string {
  const matching = TAGS.filter(([, start]) => url.startsWith(start));
  return matching.reduce((best, tag) => (tag[1].length > best[1].length ? tag : best))[0];
}

/**
 * Returns the OpenAPI document without the schemas of the routes.
 * @param publicUrl the address of the API; without it, the server is the address that the document was fetched from
 */
export function openapi(publicUrl: string | undefined): SwaggerOptions {
  return {
    stripBasePath: false,
    openapi: {
      openapi: '3.1.0',
      servers: [{ url: publicUrl ?? '/' }],
      info: {
        title: 'Sendwright',
        description:
          'Sends email, SMS and chat-app messages now or later, and reports the status of each.\n\n' +
          'Requests need an API key unless the operation says otherwise. Timestamps are in UTC with milliseconds. All errors have the same form, and ' +
          'every response has an `X-Request-Id`: quote it when you report a problem. While the requests or emails of an ' +
          'organization are limited, every response to a valid key states the remaining ones in `RateLimit-…` headers.\n\n' +
          'A request body may have 43 MB (45,088,768 bytes) unless the operator has set another limit, and must not be ' +
          'compressed. For a batch of 10,000 emails that is about 4.5 kB per email.',
        version: '1',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: TAGS.map(([name, , description]) => ({ name, description })),
      webhooks: describeEvents(),
      components: {
        headers: HEADERS,
        securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `sw_live_…`' } },
      },
    },
    transform: ({ schema, url, route }) => ({
      schema: { ...schema, tags: [tagOf(url)], security: route.config?.scope === 'public' ? [] : [{ apiKey: [] }] },
      url,
    }),
    transformObject: (generated) => {
      if (!('openapiObject' in generated)) throw new Error('this API is described in OpenAPI 3');
      const document = generated.openapiObject as unknown as Document;
      complete(document.paths);
      const named = nameSchemas(document);
      describePayloads(named);
      return named as unknown as typeof generated.openapiObject;
    },
  };
}

/** The parts of an OpenAPI document that `complete` changes. */
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
  readonly parameters?: readonly { readonly name: string }[];
  readonly requestBody?: Part;
  readonly responses: Record<string, Part>;
  readonly security?: readonly unknown[];
}
type Paths = Record<string, Record<string, Operation>>;
interface Document extends Describable {
  readonly paths: Paths;
}

/** Sets the payload of a delivery to the union of all events. */
function describePayloads({ webhooks, components }: ReturnType<typeof nameSchemas>): void {
  const oneOf = Object.values(webhooks).map(({ post }) => post.requestBody.content['application/json'].schema);
  const { properties } = components.schemas['Delivery'] as { properties: Record<string, unknown> };
  properties['payload'] = { oneOf, description: 'The request body of every attempt' };
}

const integerHeader = (description: string) => ({ description, schema: { type: 'integer' as const, minimum: 0 } });

/** Response headers that the description lists. */
const HEADERS = {
  'X-Request-Id': {
    description: 'The id of the request in the log of the service',
    schema: { type: 'string' as const },
  },
  'RateLimit-Limit': integerHeader('Capacity of the burst in requests; in a 429 response about emails, in emails'),
  'RateLimit-Remaining': integerHeader('Remaining requests or emails'),
  'RateLimit-Reset': integerHeader('Seconds until the whole burst is available again'),
  'RateLimit-Policy': {
    description:
      'Every active limit of requests and emails: the capacity of its burst and the seconds in which that refills',
    schema: { type: 'string' as const },
    example: '20000;w=2;comment="requests", 200000;w=20;comment="emails"',
  },
  'Retry-After': integerHeader('Seconds until a retry may succeed'),
  'Idempotent-Replayed': {
    description:
      '`true` if this is the response to an earlier request with the same `Idempotency-Key`; otherwise the header is absent',
    schema: { type: 'string' as const, enum: ['true'] },
  },
};

/** Returns the headers of a response. */
function headersOf(status: number, needsKey: boolean, isIdempotent: boolean): Record<string, { $ref: string }> {
  const limits = needsKey && status !== 401 ? Object.keys(HEADERS).filter((name) => name.startsWith('RateLimit-')) : [];
  const names = [
    'X-Request-Id',
    ...limits,
    ...(status === 429 || status === 503 ? ['Retry-After'] : []),
    ...(status === 202 && isIdempotent ? ['Idempotent-Replayed'] : []),
  ];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const SUCCESSES: Readonly<Record<string, string>> = { 200: 'Success', 201: 'Created', 202: 'Accepted', 204: 'Deleted' };

/** Adds descriptions, headers and examples to responses, and examples to requests. */
function complete(paths: Paths): void {
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { parameters, requestBody, responses, security }] of Object.entries(methods)) {
      const operation = `${method.toUpperCase()} ${path}`;
      const isIdempotent = parameters?.some(({ name }) => name === 'idempotency-key') ?? false;
      const example = EXAMPLES[operation];
      const body = requestBody?.content?.['application/json'];
      if (body && example?.request !== undefined) body.example = example.request;
      for (const [status, response] of Object.entries(responses)) {
        const media = response.content?.['application/json'];
        response.headers = headersOf(Number(status), security?.length !== 0, isIdempotent);
        if (Number(status) < 400) {
          response.description = SUCCESSES[status] ?? response.description ?? '';
          if (media && example) media.example = example.answer;
          // Schemas have no media type, and the generator describes every response as JSON. A file has its own type.
          if (media?.schema?.format === 'binary') response.content = { '*/*': media };
        } else {
          const { description, examples } = describeErrors(operation, Number(status));
          response.description = description;
          if (media) media.examples = examples;
        }
      }
    }
  }
}
