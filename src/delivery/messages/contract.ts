import type { WindowPolicy } from '../../domain/chat/window.ts';
import type { ChatOutcome, ChatProvider } from '../../providers/chat-provider.ts';
import type { EmailContents } from '../../store/emails/contents.ts';
import type { SendingNumber, StoredMessage } from '../../store/messages/delivery.ts';
import type { Answer, AttemptedMessage, ChannelTypes, ClaimedMessage, DeliveryDeps } from '../contract.ts';
import type { MessagePace } from './pace.ts';

/** The dependencies of the activities of chat-app messages and SMS. */
export interface MessageDeps extends DeliveryDeps {
  readonly contents: EmailContents;
  /** The provider of a number, with the number's own credentials or those of the settings. */
  readonly providerOf: (number: SendingNumber) => ChatProvider;
  readonly pace: MessagePace;
  readonly windowPolicy: WindowPolicy;
}

export interface ClaimedChatMessage extends ClaimedMessage {
  readonly stored: StoredMessage;
  readonly provider: ChatProvider;
}

export interface AttemptedChatMessage extends AttemptedMessage {
  readonly stored: StoredMessage;
}

export interface AnsweredChatMessage extends Answer {
  readonly outcome: ChatOutcome;
}

/** The types of the channel. */
export interface MessageTypes extends ChannelTypes {
  readonly claimed: ClaimedChatMessage;
  readonly attempted: AttemptedChatMessage;
  readonly held: never;
  readonly answer: AnsweredChatMessage;
}
