import type { ChatProviderName, ChatStatus } from '../chat/chat.ts';
import type { SmsStatus } from '../sms/sms.ts';

/** Channels whose messages go to one recipient and share one table. Email is sent by other rules and has its own. */
export const MESSAGE_CHANNELS = ['chatapp', 'sms'] as const;
export type MessageChannel = (typeof MESSAGE_CHANNELS)[number];

export type MessageStatus = ChatStatus | SmsStatus;
export type MessageProviderName = ChatProviderName;

/** What errors call a message of a channel. */
export const MESSAGE_NAMES: Readonly<Record<MessageChannel, string>> = { chatapp: 'chat-app message', sms: 'SMS' };
