import type { BatchMember, Body, ChatRequest, EmailRequest, Query, SmsRequest, Suppression } from './api.ts';
import { makeCall, type SendOptions } from './http.ts';
import { makeList } from './list.ts';
import type { Options } from './options.ts';

/**
 * The API of one Sendwright, within the permissions of the key. Every method throws a SendwrightError when the API refuses
 * the request or does not answer.
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

  /** @throws SendwrightError with the code `invalid_argument` when an option is not valid */
  constructor(options: Options) {
    const call = makeCall(options);

    this.emails = {
      send: (email: EmailRequest, send: SendOptions = {}) => call('post', '/v1/emails', { body: email, send }),
      /** All or none, up to 10,000. */
      batch: (emails: readonly BatchMember[], send: SendOptions = {}) =>
        call('post', '/v1/emails/batch', { body: { emails }, send }),
      get: (id: string) => call('get', '/v1/emails/{id}', { params: { id } }),
      list: (query: Query<'/v1/emails'> = {}) => makeList(call, '/v1/emails', 'emails', { query }),
      /** While it is scheduled. */
      reschedule: (id: string, scheduledAt: string) =>
        call('patch', '/v1/emails/{id}', { params: { id }, body: { scheduled_at: scheduledAt } }),
      /** While it is scheduled. */
      cancel: (id: string) => call('post', '/v1/emails/{id}/cancel', { params: { id } }),
      /** As sent, until it is erased. */
      content: (id: string) => call('get', '/v1/emails/{id}/content', { params: { id } }),
      /** Body, headers and files; the record stays. */
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
      /** All members that are still scheduled. */
      cancel: (id: string) => call('post', '/v1/emails/batch/{id}/cancel', { params: { id } }),
    };

    this.chatapp = {
      send: (message: ChatRequest, send: SendOptions = {}) => call('post', '/v1/chatapp', { body: message, send }),
      get: (id: string) => call('get', '/v1/chatapp/{id}', { params: { id } }),
      list: (query: Query<'/v1/chatapp'> = {}) => makeList(call, '/v1/chatapp', 'messages', { query }),
      reschedule: (id: string, scheduledAt: string) =>
        call('patch', '/v1/chatapp/{id}', { params: { id }, body: { scheduled_at: scheduledAt } }),
      cancel: (id: string) => call('post', '/v1/chatapp/{id}/cancel', { params: { id } }),
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
      /** Numbers, short codes and messaging services, which the operator connects. */
      senders: (query: Query<'/v1/sms/senders'> = {}) => makeList(call, '/v1/sms/senders', 'senders', { query }),
    };

    this.stats = {
      /** Figures and rates of the last 24 hours by hour, unless the query asks for others. */
      get: (query: Query<'/v1/stats'> = {}) => call('get', '/v1/stats', { query }),
    };

    this.domains = {
      create: (name: string) => call('post', '/v1/domains', { body: { name } }),
      get: (id: string) => call('get', '/v1/domains/{id}', { params: { id } }),
      list: (query: Query<'/v1/domains'> = {}) => makeList(call, '/v1/domains', 'domains', { query }),
      /** Switches open and click tracking. */
      update: (id: string, changes: Body<'/v1/domains/{id}', 'patch'>) =>
        call('patch', '/v1/domains/{id}', { params: { id }, body: changes }),
      /** Queries DNS now. */
      verify: (id: string) => call('post', '/v1/domains/{id}/verify', { params: { id } }),
      delete: (id: string) => call('delete', '/v1/domains/{id}', { params: { id } }),
    };

    this.erasures = {
      /** Erases a recipient in as many requests as necessary. @returns the report of each */
      create: async (email: string) => {
        const reports = [];
        let cursor: string | undefined;
        do {
          const { report, next_cursor: next } = await call('post', '/v1/erasures', {
            body: { email, ...(cursor !== undefined && { cursor }) },
          });
          reports.push(report);
          cursor = next ?? undefined;
        } while (cursor !== undefined);
        return reports;
      },
    };

    this.suppressions = {
      /** Up to 1,000 addresses. @returns an entry for each, also for those that were already on the list */
      create: async (...emails: readonly string[]): Promise<Suppression[]> => {
        const answer = await call('post', '/v1/suppressions', { body: { emails } });
        return 'suppressions' in answer ? answer.suppressions : [answer];
      },
      get: (idOrEmail: string) => call('get', '/v1/suppressions/{idOrEmail}', { params: { idOrEmail } }),
      list: (query: Query<'/v1/suppressions'> = {}) => makeList(call, '/v1/suppressions', 'suppressions', { query }),
      delete: (idOrEmail: string) => call('delete', '/v1/suppressions/{idOrEmail}', { params: { idOrEmail } }),
    };

    this.webhooks = {
      /** Only this answer contains the secret. */
      create: (webhook: Body<'/v1/webhooks'>) => call('post', '/v1/webhooks', { body: webhook }),
      get: (id: string) => call('get', '/v1/webhooks/{id}', { params: { id } }),
      list: (query: Query<'/v1/webhooks'> = {}) => makeList(call, '/v1/webhooks', 'webhooks', { query }),
      update: (id: string, changes: Body<'/v1/webhooks/{id}', 'patch'>) =>
        call('patch', '/v1/webhooks/{id}', { params: { id }, body: changes }),
      delete: (id: string) => call('delete', '/v1/webhooks/{id}', { params: { id } }),
      /** For a day the old secret signs too. */
      rotateSecret: (id: string) => call('post', '/v1/webhooks/{id}/rotate-secret', { params: { id } }),
      /** Sends it an event `webhook.test`. */
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
      /** Only this answer contains the key itself. */
      create: (key: Body<'/v1/keys'>) => call('post', '/v1/keys', { body: key }),
      get: (id: string) => call('get', '/v1/keys/{id}', { params: { id } }),
      list: (query: Query<'/v1/keys'> = {}) => makeList(call, '/v1/keys', 'keys', { query }),
      /** Revokes it. */
      delete: (id: string) => call('delete', '/v1/keys/{id}', { params: { id } }),
    };

    this.requests = {
      /** The log of requests to the API. */
      list: (query: Query<'/v1/requests'> = {}) => makeList(call, '/v1/requests', 'requests', { query }),
    };
  }
}
