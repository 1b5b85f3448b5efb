/** The statuses of a chat-app message, with what each does not promise. */
export const CHAT_STATUSES = [
  /** Accepted and pending: for a worker or for the next attempt. A provider may already have it. */
  'queued',
  /** Accepted, and due later. */
  'scheduled',
  /** A provider accepted it. This states nothing about the recipient's phone. */
  'sent',
  /** It arrived on the recipient's phone. Whether it was read is unknown. */
  'delivered',
  /** The recipient opened it. Without read receipts it stays at delivered. */
  'read',
  /** Refused permanently, or given up. `error` states why, `error_code` contains the provider's code. */
  'failed',
  /** Canceled before it was due. */
  'canceled',
] as const;
export type ChatStatus = (typeof CHAT_STATUSES)[number];

export const CHAT_TYPES = ['text', 'template', 'image', 'document'] as const;
export type ChatType = (typeof CHAT_TYPES)[number];

/** The names of chat-app providers in settings and columns. */
export const CHAT_PROVIDERS = ['twilio', 'meta'] as const;
export type ChatProviderName = (typeof CHAT_PROVIDERS)[number];

/** The party that confirmed that a number belongs to the organization that connected it. */
export type NumberVerifier = 'operator' | 'provider';

/** A number with the credentials that claim it. */
export interface NumberClaim {
  readonly provider: ChatProviderName;
  /** E.164. */
  readonly number: string;
  /** Meta's id of the number. */
  readonly phone_number_id: string | null;
  /** The number's own Twilio account; null for the account of the settings. */
  readonly account_sid: string | null;
  readonly token: string;
}

/** A provider's result of verifying that a number belongs to the account of a token. */
export type NumberVerification =
  | { readonly kind: 'verified' }
  /** The token is not valid for the account, or the account does not have the number. */
  | { readonly kind: 'refused'; readonly param: string; readonly message: string }
  /** The provider did not respond; the request can be retried. */
  | { readonly kind: 'unavailable'; readonly provider: string };

/** The name and parameters of a template; `components` is passed on unchanged. */
export interface ChatTemplate {
  readonly name: string;
  readonly language: string | { readonly code: string };
  readonly components?: unknown;
}

/** The Twilio content of a template. */
export interface TwilioContent {
  readonly contentSid: string;
  /** The names of its variables in the order header, body, buttons: `1`, `2` or names. */
  readonly variables: readonly string[];
}

/** The content of a message. At most one of template, image and document is set, according to the type. */
export interface ChatContent {
  /** The body of a text message; otherwise the caption of a file that has none of its own. */
  readonly text: string | null;
  readonly preview_url: boolean;
  readonly template: ChatTemplate | null;
  readonly image: { readonly link: string; readonly caption?: string | null } | null;
  readonly document: {
    readonly link: string;
    readonly caption?: string | null;
    readonly filename?: string | null;
  } | null;
  /** Sent instead of a message without template while the recipient's customer-service window is closed. */
  readonly fallback_template?: ChatTemplate;
}

/** A chat-app message in the form for providers. */
export interface OutgoingChat {
  readonly id: string;
  readonly type: ChatType;
  /** E.164. */
  readonly from: string;
  /** E.164, or a business-scoped user id. */
  readonly to: string;
  readonly content: ChatContent;
}

/** Returns the caption of an image or document: its own, otherwise the text; null without either. */
export function captionOf({ text, image, document }: ChatContent): string | null {
  return ((image ?? document)?.caption ?? text) || null;
}
