/** The content of a message from a chat-app user. */
export const INBOUND_TYPES = [
  'text',
  'image',
  'video',
  'audio',
  'document',
  'sticker',
  'location',
  /** A reply by a button or an entry of a list. */
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
  /** The name of its profile, which it chooses freely. */
  readonly name: string | null;
}

/** A file that the provider keeps. */
export interface InboundMedia {
  /** Meta's id, or the path at Twilio. */
  readonly reference: string;
  readonly contentType: string;
  readonly filename: string | null;
}

export interface InboundMessage {
  readonly kind: 'message';
  /** The same for every repetition of the callback. */
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
  /** `emoji` is null when a reaction is taken back. */
  readonly reaction: { readonly emoji: string | null; readonly providerMessageId: string } | null;
  /** The provider's id of the message that it answers. */
  readonly repliesTo: string | null;
}

/** A user got another id or number. */
export interface UserChange {
  readonly kind: 'userChange';
  readonly before: Pick<ChatUser, 'number' | 'userId'>;
  readonly after: Pick<ChatUser, 'number' | 'userId'>;
}

export type InboundEvent = InboundMessage | UserChange;

/** Events at one of our numbers, by its number or by Meta's id of it. */
export type InboundCallback = { readonly events: readonly InboundEvent[] } & (
  | { readonly provider: 'meta'; readonly phoneNumberId: string }
  | { readonly provider: 'twilio'; readonly number: string }
);

/** Seconds for which a link to a file is valid: longer than the attempts of a webhook; Meta keeps the file no longer. */
export const MEDIA_LINK_SECONDS = 7 * 86_400;
