import { type ErrorCode, ServiceError } from '../../domain/errors.ts';
import { concurrentRequest, reusedKey } from '../../intake/idempotency.ts';
import { notScheduled } from '../../intake/schedule.ts';
import { envelope, STATUS } from '../plugins/errors.ts';
import type { RouteRow } from '../route.ts';

interface ErrorDoc {
  readonly when: string;
  /** An example message, and an example of the field in `param`. */
  readonly message: string;
  readonly param?: string;
  /** The only operations that return this error. By default, all operations with its status do. */
  readonly only?: readonly string[];
}

const SENDING_EMAIL = ['POST /v1/emails', 'POST /v1/emails/batch'];
const SENDING = [...SENDING_EMAIL, 'POST /v1/chatapp', 'POST /v1/sms'];

/** Operations that are subject to a limit of the organization. Sending creates tags and files. */
const CREATING = [...SENDING, 'POST /v1/webhooks', 'POST /v1/domains', 'POST /v1/keys', 'POST /v1/chatapp/numbers'];

const NEEDS_ENABLED_ENDPOINT = [
  'POST /v1/webhooks/{id}/test',
  'POST /v1/webhooks/{id}/replay',
  'POST /v1/webhooks/{id}/deliveries/{deliveryId}/replay',
];

/** The documentation of every error code. A code with an empty `only` is returned only where no route matches. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorDoc | readonly ErrorDoc[]>> = {
  invalid_json: { when: 'The body is not JSON.', message: 'the request body is not valid JSON at line 2, character 5' },
  invalid_idempotency_key: {
    when: 'The Idempotency-Key is empty or too long.',
    message: 'Idempotency-Key must be 1 to 256 characters',
    only: SENDING,
  },
  unauthorized: {
    when: 'The API key is missing, malformed, unknown, revoked or expired, or may not be used from this address.',
    message: 'a valid API key is required: Authorization: Bearer <API_KEY>',
  },
  insufficient_scope: {
    when: 'The API key does not allow this, or the organization is suspended and may not send.',
    message: 'this API key has read_only, which does not allow this request',
  },
  domain_not_found: {
    when: 'The domain of `from` is not registered on the account.',
    message: 'the domain example.org is not registered on this account; a subdomain is registered on its own',
    param: 'from',
    only: SENDING_EMAIL,
  },
  domain_not_verified: {
    when: 'The domain of `from` is registered, but not verified.',
    message: 'the domain example.org is registered but not verified yet',
    param: 'from',
    only: SENDING_EMAIL,
  },
  not_found: { when: 'The account has nothing with this id.', message: 'there is no email with this id' },
  method_not_allowed: {
    when: 'The path does not support this method.',
    message: 'this method is not allowed here; allowed: GET',
    only: [],
  },
  conflict: [
    {
      when: 'The email is not sent yet.',
      message: 'this email is still to be sent; cancel it, or wait until it is sent',
      only: ['DELETE /v1/emails/{id}/content'],
    },
    {
      when: 'The webhook endpoint is disabled.',
      message: 'this endpoint is disabled; enable it first',
      only: NEEDS_ENABLED_ENDPOINT,
    },
    {
      when: 'This organization or another one has connected the number.',
      message: 'is connected already',
      param: 'number',
      only: ['POST /v1/chatapp/numbers'],
    },
    {
      when: 'This organization has registered the domain, or another one has verified it.',
      message: 'the domain example.com is registered already',
      param: 'name',
      only: ['POST /v1/domains'],
    },
  ],
  limit_exceeded: {
    when: 'The organization has reached a limit, which the message states.',
    message: 'the organization has 20 webhook endpoints, which is its limit',
    only: CREATING,
  },
  invalid_idempotent_request: {
    when: 'The Idempotency-Key was used with another request.',
    message: reusedKey().message,
    only: SENDING,
  },
  concurrent_idempotent_requests: {
    when: 'The first request with this Idempotency-Key is still running.',
    message: concurrentRequest().message,
    only: SENDING,
  },
  content_erased: {
    when: 'The content of the email was erased, by request or since its retention ended.',
    message: 'the content of this email was erased',
    only: ['GET /v1/emails/{id}/content'],
  },
  payload_too_large: {
    when: 'The body is too large.',
    message: 'the request body is too large; at most 43 MB, 45,088,768 bytes are allowed',
  },
  unsupported_media_type: {
    when: 'The body is something other than JSON, or is compressed.',
    message: 'the request body must be JSON; send the header Content-Type: application/json',
  },
  validation_error: {
    when: 'A field or a query parameter is invalid or unknown; the message begins with it.',
    message: 'is not a known parameter',
    param: 'x',
  },
  invalid_attachment: {
    when: 'A file is of a blocked type, too large, not base64, or cannot be fetched; the message names it.',
    message: '"setup.exe" is of a blocked type (.exe)',
    param: 'attachments.0.filename',
    only: ['POST /v1/emails'],
  },
  not_scheduled: [
    {
      when: 'The email is no longer scheduled.',
      message: notScheduled('an email', 'sent').message,
      only: ['PATCH /v1/emails/{id}', 'POST /v1/emails/{id}/cancel'],
    },
    {
      when: 'No email of the batch is still scheduled.',
      message: 'no email of this batch is still scheduled',
      only: ['POST /v1/emails/batch/{id}/cancel'],
    },
    {
      when: 'The chat-app message or SMS is no longer scheduled.',
      message: notScheduled('a message', 'sent').message,
      only: [
        'PATCH /v1/chatapp/{id}',
        'POST /v1/chatapp/{id}/cancel',
        'PATCH /v1/sms/{id}',
        'POST /v1/sms/{id}/cancel',
      ],
    },
  ],
  no_chatapp_account: {
    when: 'No number is connected, or not the one in `from`.',
    message: 'no chat-app number is connected to this account',
    only: ['POST /v1/chatapp'],
  },
  no_sms_sender: {
    when: "No sender serves the recipient's country, or not the one in `from`.",
    message: 'no sender of this account serves CA',
    only: ['POST /v1/sms'],
  },
  rate_limit_exceeded: {
    when: 'Too many requests, emails in them, or registrations and checks of domains; try again after `Retry-After` seconds.',
    message: 'more than 10000 requests a second; try again in 1 s',
  },
  quota_exceeded: {
    when: "The request exceeds the rest of the organization's monthly quota; `Retry-After` is the time until the next month.",
    message:
      'the quota of 50,000 emails a month leaves 3, and this takes 10; the next month begins at 2026-04-01T00:00:00.000Z',
    only: SENDING_EMAIL,
  },
  internal_error: { when: 'Something went wrong on our side.', message: 'something went wrong on our side' },
  unavailable: {
    when:
      'The database or the attachment store cannot be reached, a provider cannot confirm a number, too many downloads, large ' +
      'requests, batches or other requests of the organization are in progress, or a read takes too long; try again after ' +
      '`Retry-After` seconds.',
    message: 'the service cannot reach its database; try again',
  },
};

const REQUEST_ID = 'req_01kajc8wz6h3xkq3m1x8e6v5tn';

/** Statuses that an operation has only if an error in `ERRORS` names it in `only`. */
const RARE_STATUSES = [409, 410];

/** Returns the error statuses of a route that requires an API key. */
export function errorStatuses([method, url, , { schema }]: RouteRow): number[] {
  const operation = `${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`;
  return [
    ...[401, 403, 422, 429, 500, 503],
    ...(method === 'GET' ? [] : [400, 413, 415]),
    ...(schema.params ? [404] : []),
    ...RARE_STATUSES.filter((status) => docsOf(operation, status).length > 0),
  ];
}

function docsOf(operation: string, status: number) {
  return (Object.keys(ERRORS) as ErrorCode[])
    .filter((code) => STATUS[code] === status)
    .flatMap((code) => [ERRORS[code]].flat().map((doc) => ({ code, ...doc })))
    .filter(({ only }) => only?.includes(operation) ?? true);
}

/** Describes the errors of one operation and status, with an example for each code. */
export function describeErrors(
  operation: string,
  status: number,
): { description: string; examples: Record<string, { value: unknown }> } {
  const docs = docsOf(operation, status);
  const answer = ({ code, message, param }: (typeof docs)[number]) => ({
    value: envelope(new ServiceError(code, message, param), REQUEST_ID),
  });
  return {
    description: docs.map(({ code, when }) => `\`${code}\`: ${when}`).join(' '),
    examples: Object.fromEntries(docs.map((doc) => [doc.code, answer(doc)])),
  };
}
