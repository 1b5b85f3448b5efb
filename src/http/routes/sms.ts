import { CHAT_BODY_BYTES } from '../../domain/limits.ts';
import { sendSms } from '../../intake/sms.ts';
import { listSenders } from '../../store/sms/senders.ts';
import { changerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { IdempotencyHeader } from '../schemas/common.ts';
import { AcceptedSms, SenderBody, SendSmsBody, SmsBody, SmsFilters, SmsParams, SmsSummary } from '../schemas/sms.ts';
import { messageRoutes } from './messages.ts';

export const send = route('sendSms', 'Send an SMS', {
  description:
    "Accepts one text message for delivery. Without `from`, it comes from a sender that serves the recipient's country. " +
    'A recipient that has sent STOP to the sender gets nothing: the message ends as `suppressed`.',
  headers: IdempotencyHeader,
  body: SendSmsBody,
  response: { 202: AcceptedSms },
  handler: (deps, request) => {
    const { to, text, from = null, tags, scheduled_at = null } = request.body;
    const sms = { to, text, from, tags: tags ?? [], scheduled_at };
    return sendSms(deps, changerOf(request), sms, request.idempotency);
  },
  options: { bodyLimit: CHAT_BODY_BYTES },
});

export const { get, list, reschedule, cancel, eraseContent } = messageRoutes({
  channel: 'sms',
  operation: 'Sms',
  one: 'an SMS',
  many: 'SMS',
  params: SmsParams,
  body: SmsBody,
  summary: SmsSummary,
  filters: SmsFilters,
});

export const senders = listRoute('listSmsSenders', 'List SMS senders', {
  name: 'senders',
  item: SenderBody,
  description:
    'Numbers, short codes and messaging services that SMS come from, newest first. The operator connects them. Follow ' +
    '`next_cursor` until it is null.',
  read: ({ pool }, { orgId }, after, limit) => listSenders(pool, orgId, after, limit),
});
