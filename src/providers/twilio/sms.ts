import { isMessagingService } from '../../domain/sms/senders.ts';
import type { ChatProvider } from '../chat-provider.ts';
import { type MessagingAccount, normalizeText, twilioMessages } from './messages.ts';

/** Sends SMS through Twilio, from a number, a short code or a messaging service. Throws if `accountSid` is malformed. */
export function twilioSms(account: MessagingAccount): ChatProvider {
  return twilioMessages(account, {
    endpointsOf: ({ from, to }) => (isMessagingService(from) ? { to, messagingServiceSid: from } : { to, from }),
    // Smart encoding would replace characters.
    payloadOf: ({ content }) => ({ body: content.text ?? '', smartEncoded: false }),
    refusal: () => undefined,
    matchBody: ({ content }, body) => (body === normalizeText(content.text ?? '') ? 'same' : 'other'),
  });
}
