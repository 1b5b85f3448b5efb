/** The types of messages from chat-app users. */
export const INBOUND_TYPES = [
  'text',
  'image',
  'video',
  'audio',
  'document',
  'sticker',
  'location',
  /** The user pressed a button or selected an entry of a list. */
  'button',
  'reaction',
  /** Content of another kind, such as a contact or an order, or one that the provider does not pass on. */
  'unsupported',
] as const;
export type InboundType = (typeof INBOUND_TYPES)[number];

/** A user as a provider identifies it; at least one of `number` and `userId` is known. */
export interface ChatUser {
  /** E.164; null if the user withholds it. */
  readonly number: string | null;
  /** Business-scoped; null before April 2026. */
  readonly userId: string | null;
  readonly username: string | null;
  /** The profile name, which the user chooses freely. */
  readonly name: string | null;
}

/** A file stored by the provider. */
export interface InboundMedia {
  /** Meta's id, or the path at Twilio. */
  readonly reference: string;
  readonly contentType: string;
  readonly filename: string | null;
}

export interface InboundMessage {
  readonly kind: 'message';
  /** Identical in repeated callbacks. */
  readonly providerMessageId: string;
  readonly user: ChatUser;
  readonly type: InboundType;
  /** Unix milliseconds; null if the provider does not report it. */
  readonly sentAt: number | null;
  /** The text, or the caption of a file. */
  readonly text: string | null;
  readonly media: InboundMedia | null;
  readonly button: { readonly text: string; readonly payload: string | null } | null;
  readonly location: {
    readonly latitude: number;
    readonly longitude: number;
    readonly name: string | null;
    readonly address: string | null;
  } | null;
  /** `emoji` is null if the user removed the reaction. */
  readonly reaction: { readonly emoji: string | null; readonly providerMessageId: string } | null;
  /** The provider's id of the message to which it replies. */
  readonly repliesTo: string | null;
}

/** A user's id or number changed. */
export interface UserChange {
  readonly kind: 'userChange';
  readonly before: Pick<ChatUser, 'number' | 'userId'>;
  readonly after: Pick<ChatUser, 'number' | 'userId'>;
}

export type InboundEvent = InboundMessage | UserChange;

/** Events at one of our numbers, which is identified by the number or by Meta's id. */
export type InboundCallback = { readonly events: readonly InboundEvent[] } & (
  | { readonly provider: 'meta'; readonly phoneNumberId: string }
  | { readonly provider: 'twilio'; readonly number: string }
);

/** The lifetime of a link to a file in seconds: longer than all attempts of a webhook. Meta stores the file no longer. */
export const MEDIA_LINK_SECONDS = 7 * 86_400;
