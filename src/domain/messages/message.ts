import type { ChatProviderName, ChatStatus } from '../chat/chat.ts';
import type { SmsStatus } from '../sms/sms.ts';

/** Channels whose messages have one recipient and share one table. Email has its own table and rules. */
export type MessageChannel = 'chatapp' | 'sms';

export type MessageStatus = ChatStatus | SmsStatus;
export type MessageProviderName = ChatProviderName;

/** The name of a channel's message in errors. */
export const MESSAGE_NAMES: Readonly<Record<MessageChannel, string>> = { chatapp: 'chat-app message', sms: 'SMS' };
