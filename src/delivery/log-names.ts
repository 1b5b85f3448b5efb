import { MESSAGE_NAMES } from '../domain/messages/message.ts';
import type { MessageKind } from '../telemetry/topics.ts';

/** The names of messages in the log, by channel. */
export const KIND_NAMES: Readonly<Record<MessageKind, string>> = { email: 'email', ...MESSAGE_NAMES };

/** The id of a message as a field of the log. */
export function logId(kind: MessageKind, id: string): Readonly<Record<string, string>> {
  return kind === 'email' ? { email: id } : { message: id };
}
