import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { parsePhoneQuery, parseRecipientQuery } from '../../domain/chat/recipient.ts';
import { parseTags } from '../../domain/email/tag-filter.ts';
import { requireFound, requireValid } from '../../domain/errors.ts';
import { parseInstant } from '../../domain/instant.ts';
import { MESSAGE_NAMES, type MessageChannel, type MessageStatus } from '../../domain/messages/message.ts';
import { eraseMessageContent } from '../../intake/content.ts';
import { cancelMessage, rescheduleMessage } from '../../intake/messages.ts';
import { findMessage, listMessages, type MessageSummary } from '../../store/messages/messages.ts';
import { listRoute } from '../list-route.ts';
import { changerOf } from '../plugins/auth.ts';
import { route } from '../route.ts';
import { CanceledMessage, RescheduledMessage, RescheduleMessageBody } from '../schemas/messages.ts';

/** Describes the routes of a channel. */
interface ChannelRoutes {
  readonly channel: MessageChannel;
  /** The suffix of operation ids: `ChatMessage`. */
  readonly operation: string;
  /** The noun for one message, with its article, and for several. */
  readonly one: string;
  readonly many: string;
  readonly params: TObject;
  readonly body: TSchema;
  readonly summary: TSchema & { title?: string };
  readonly filters: TProperties;
  /** Converts a stored message into the one in responses. */
  readonly present?: (message: MessageSummary) => MessageSummary;
}

interface MessageQuery {
  readonly status?: MessageStatus;
  readonly to?: string;
  readonly tag?: string | string[];
  readonly created_after?: string;
  readonly created_before?: string;
}

/** Creates the routes that read, reschedule and cancel messages of one channel. */
export function messageRoutes(of: ChannelRoutes) {
  const { channel, operation, one, many, params, present = (message) => message } = of;
  const idOf = (request: { readonly params: unknown }) => (request.params as { id: string }).id;
  return {
    get: route(`get${operation}`, `Get ${one}`, {
      description: 'One message with its content, status and timeline.',
      params,
      response: { 200: of.body },
      handler: async ({ pool, contents }, request) => {
        const message = await findMessage(pool, contents, request.orgId, channel, idOf(request));
        return present(requireFound(message, MESSAGE_NAMES[channel]));
      },
    }),

    list: listRoute(`list${operation.replace(/s?$/, 's')}`, `List ${many}`, {
      name: 'messages',
      item: of.summary,
      description: 'Messages that match all filters, newest first. Follow `next_cursor` until it is null.',
      filters: of.filters,
      filtersOf: ({ query }) => {
        const { status = null, to, tag, created_after, created_before } = query as MessageQuery;
        // The lists of both channels have the same name. Without the channel, a cursor would be valid for both.
        return {
          channel,
          status,
          to: to === undefined ? null : recipientOf(channel, to),
          tags: parseTags(tag),
          created_after: instantOf(created_after),
          created_before: instantOf(created_before),
        };
      },
      readPage: async ({ pool }, { orgId }, after, limit, filters) => {
        const { rows, next } = await listMessages(pool, orgId, channel, filters, after, limit);
        return { rows: rows.map(present), next };
      },
    }),

    reschedule: route(`reschedule${operation}`, `Reschedule ${one}`, {
      description:
        'Changes the time of a message that is still scheduled, to an earlier or later one, as often as you like.',
      params,
      body: RescheduleMessageBody,
      response: { 200: RescheduledMessage },
      handler: (deps, request) => {
        const { scheduled_at: time } = request.body;
        return rescheduleMessage(deps, request.orgId, channel, idOf(request), time, changerOf(request));
      },
    }),

    eraseContent: route(`erase${operation}Content`, `Erase the content of ${one}`, {
      description:
        'Erases the content of a message that is no longer to be sent: text, template, file links and captions become null. The ' +
        'record stays. Repeated, it changes nothing.',
      params,
      response: { 204: Type.Null() },
      handler: async (deps, request) => {
        await eraseMessageContent(deps, request.orgId, channel, idOf(request));
      },
    }),

    cancel: route(`cancel${operation}`, `Cancel ${one}`, {
      description: 'Cancels a message that is still scheduled. It can still be retrieved and listed.',
      params,
      response: { 200: CanceledMessage },
      handler: (deps, request) => cancelMessage(deps, request.orgId, channel, idOf(request), changerOf(request)),
    }),
  };
}

/** Converts a recipient in a query to its stored form. */
function recipientOf(channel: MessageChannel, text: string): string {
  return requireValid(channel === 'sms' ? parsePhoneQuery(text) : parseRecipientQuery(text), 'to').to;
}

/** Converts a time that the rule `instant` has validated to the API's format; null without one. */
export function instantOf(text: string | undefined): string | null {
  return (text !== undefined && parseInstant(text)?.toISOString()) || null;
}
