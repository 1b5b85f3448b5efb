import type { BatchMember, Body, ChatRequest, EmailRequest, Query, SmsRequest, Suppression } from './api.ts';
import { makeCall, type SendOptions } from './http.ts';
import { makeList } from './list.ts';
import type { Options } from './options.ts';

/**
 * A client of the API of one Sendwright service, with the permissions of the key. Every method throws a SendwrightError if
 * the API refuses the request or does not respond.
 */
export class Sendwright {
  readonly emails;
  readonly batches;
  readonly chatapp;
  readonly numbers;
  readonly sms;
  readonly stats;
  readonly domains;
  readonly erasures;
  readonly suppressions;
  readonly webhooks;
  readonly keys;
  readonly requests;

  /** @throws SendwrightError with the code `invalid_argument` if an option is not valid */
  constructor(options: Options) {
    const call = makeCall(options);

    this.emails = {
      send: (email: EmailRequest, send: SendOptions = {}) => call('post', '/v1/emails', { body: email, send }),
      /** Accepts all emails or none; up to 10,000. */
      batch: (emails: readonly BatchMember[], send: SendOptions = {}) =>
        call('post', '/v1/emails/batch', { body: { emails }, send }),
      get: (id: string) => call('get', '/v1/emails/{id}', { params: { id } }),
      list: (query: Query<'/v1/emails'> = {}) => makeList(call, '/v1/emails', 'emails', { query }),
      /** Reschedules an email whose status is `scheduled`. */
      reschedule: (id: string, scheduledAt: string) =>
        call('patch', '/v1/emails/{id}', { params: { id }, body: { scheduled_at: scheduledAt } }),
      /** Cancels an email whose status is `scheduled`. */
      cancel: (id: string) => call('post', '/v1/emails/{id}/cancel', { params: { id } }),
      /** Returns the content as sent, until it is erased. */
      content: (id: string) => call('get', '/v1/emails/{id}/content', { params: { id } }),
      /** Erases body, headers and files; the other fields stay. */
      eraseContent: (id: string) => call('delete', '/v1/emails/{id}/content', { params: { id } }),
      tags: async () => (await call('get', '/v1/emails/tags')).tags,
      attachments: async (id: string) =>
        (await call('get', '/v1/emails/{id}/attachments', { params: { id } })).attachments,
      attachment: (id: string, attachmentId: string) =>
        call('get', '/v1/emails/{id}/attachments/{attachmentId}', { params: { id, attachmentId } }),
    };

    this.batches = {
      get: (id: string) => call('get', '/v1/emails/batch/{id}', { params: { id } }),
      list: (query: Query<'/v1/emails/batch'> = {}) => makeList(call, '/v1/emails/batch', 'batches', { query }),
      /** Cancels all members whose status is `scheduled`. */
      cancel: (id: string) => call('post', '/v1/emails/batch/{id}/cancel', { params: { id } }),
    };

    this.chatapp = {
      send: (message: ChatRequest, send: SendOptions = {}) => call('post', '/v1/chatapp', { body: message, send }),
      get: (id: string) => call('get', '/v1/chatapp/{id}', { params: { id } }),
      list: (query: Query<'/v1/chatapp'> = {}) => makeList(call, '/v1/chatapp', 'messages', { query }),
      reschedule: (id: string, scheduledAt: string) =>
        call('patch', '/v1/chatapp/{id}', { params: { id }, body: { scheduled_at: scheduledAt } }),
      cancel: (id: string) => call('post', '/v1/chatapp/{id}/cancel', { params: { id } }),
      /** Erases text, template and files; the other fields stay. */
      eraseContent: (id: string) => call('delete', '/v1/chatapp/{id}/content', { params: { id } }),
    };

    this.numbers = {
      create: (number: Body<'/v1/chatapp/numbers'>) => call('post', '/v1/chatapp/numbers', { body: number }),
      get: (id: string) => call('get', '/v1/chatapp/numbers/{id}', { params: { id } }),
      list: (query: Query<'/v1/chatapp/numbers'> = {}) => makeList(call, '/v1/chatapp/numbers', 'numbers', { query }),
      delete: (id: string) => call('delete', '/v1/chatapp/numbers/{id}', { params: { id } }),
    };

    this.sms = {
      send: (message: SmsRequest, send: SendOptions = {}) => call('post', '/v1/sms', { body: message, send }),
      get: (id: string) => call('get', '/v1/sms/{id}', { params: { id } }),
      list: (query: Query<'/v1/sms'> = {}) => makeList(call, '/v1/sms', 'messages', { query }),
      reschedule: (id: string, scheduledAt: string) =>
        call('patch', '/v1/sms/{id}', { params: { id }, body: { scheduled_at: scheduledAt } }),
      cancel: (id: string) => call('post', '/v1/sms/{id}/cancel', { params: { id } }),
      /** Erases the text; the other fields stay. */
      eraseContent: (id: string) => call('delete', '/v1/sms/{id}/content', { params: { id } }),
      /** Lists the numbers, short codes and messaging services that the operator has connected. */
      senders: (query: Query<'/v1/sms/senders'> = {}) => makeList(call, '/v1/sms/senders', 'senders', { query }),
    };

    this.stats = {
      /** Returns counts and rates, by default of the last 24 hours by hour. */
      get: (query: Query<'/v1/stats'> = {}) => call('get', '/v1/stats', { query }),
    };

    this.domains = {
      create: (name: string) => call('post', '/v1/domains', { body: { name } }),
      get: (id: string) => call('get', '/v1/domains/{id}', { params: { id } }),
      list: (query: Query<'/v1/domains'> = {}) => makeList(call, '/v1/domains', 'domains', { query }),
      /** Enables or disables open and click tracking. */
      update: (id: string, changes: Body<'/v1/domains/{id}', 'patch'>) =>
        call('patch', '/v1/domains/{id}', { params: { id }, body: changes }),
      /** Checks the DNS records now. */
      verify: (id: string) => call('post', '/v1/domains/{id}/verify', { params: { id } }),
      delete: (id: string) => call('delete', '/v1/domains/{id}', { params: { id } }),
    };

    this.erasures = {
      /**
       * Erases a recipient in as many requests as necessary.
       * @param recipient an email address, or `{ phone }` in international form
       * @returns the report of each request
       */
      create: async (recipient: string | { readonly phone: string }) => {
        const named = typeof recipient === 'string' ? { email: recipient } : { phone: recipient.phone };
        const reports = [];
        let cursor: string | undefined;
        do {
          const { report, next_cursor: next } = await call('post', '/v1/erasures', {
            body: { ...named, ...(cursor !== undefined && { cursor }) },
          });
          reports.push(report);
          cursor = next ?? undefined;
        } while (cursor !== undefined);
        return reports;
      },
    };

    this.suppressions = {
      /** Adds up to 1,000 addresses. @returns an entry for each, including those that were already on the list */
      create: async (...emails: readonly string[]): Promise<Suppression[]> => {
        const answer = await call('post', '/v1/suppressions', { body: { emails } });
        return 'suppressions' in answer ? answer.suppressions : [answer];
      },
      get: (idOrEmail: string) => call('get', '/v1/suppressions/{idOrEmail}', { params: { idOrEmail } }),
      list: (query: Query<'/v1/suppressions'> = {}) => makeList(call, '/v1/suppressions', 'suppressions', { query }),
      delete: (idOrEmail: string) => call('delete', '/v1/suppressions/{idOrEmail}', { params: { idOrEmail } }),
    };

    this.webhooks = {
      /** Only this response contains the secret. */
      create: (webhook: Body<'/v1/webhooks'>) => call('post', '/v1/webhooks', { body: webhook }),
      get: (id: string) => call('get', '/v1/webhooks/{id}', { params: { id } }),
      list: (query: Query<'/v1/webhooks'> = {}) => makeList(call, '/v1/webhooks', 'webhooks', { query }),
      update: (id: string, changes: Body<'/v1/webhooks/{id}', 'patch'>) =>
        call('patch', '/v1/webhooks/{id}', { params: { id }, body: changes }),
      delete: (id: string) => call('delete', '/v1/webhooks/{id}', { params: { id } }),
      /** Replaces the secret. For a day, deliveries are also signed with the old one. */
      rotateSecret: (id: string) => call('post', '/v1/webhooks/{id}/rotate-secret', { params: { id } }),
      /** Sends a `webhook.test` event to the endpoint. */
      test: (id: string) => call('post', '/v1/webhooks/{id}/test', { params: { id } }),
      /** Sends the events of a period again. */
      replay: (id: string, period: Body<'/v1/webhooks/{id}/replay'>) =>
        call('post', '/v1/webhooks/{id}/replay', { params: { id }, body: period }),
      deliveries: (id: string, query: Query<'/v1/webhooks/{id}/deliveries'> = {}) =>
        makeList(call, '/v1/webhooks/{id}/deliveries', 'deliveries', { params: { id }, query }),
      delivery: (id: string, deliveryId: string) =>
        call('get', '/v1/webhooks/{id}/deliveries/{deliveryId}', { params: { id, deliveryId } }),
      replayDelivery: (id: string, deliveryId: string) =>
        call('post', '/v1/webhooks/{id}/deliveries/{deliveryId}/replay', { params: { id, deliveryId } }),
    };

    this.keys = {
      /** Only this response contains the key itself. */
      create: (key: Body<'/v1/keys'>) => call('post', '/v1/keys', { body: key }),
      get: (id: string) => call('get', '/v1/keys/{id}', { params: { id } }),
      list: (query: Query<'/v1/keys'> = {}) => makeList(call, '/v1/keys', 'keys', { query }),
      /** Revokes the key. */
      delete: (id: string) => call('delete', '/v1/keys/{id}', { params: { id } }),
    };

    this.requests = {
      /** Lists the log of API requests. */
      list: (query: Query<'/v1/requests'> = {}) => makeList(call, '/v1/requests', 'requests', { query }),
    };
  }
}
