/** Where a chat-app message stands. Each state says what it does not promise. */
export const CHAT_STATUSES = [
  /** Accepted and waiting for a worker, or between two attempts. A provider may already have it. */
  'queued',
  /** A provider took it. Says nothing about the recipient's phone. */
  'sent',
  /** It came to the recipient's phone; whether somebody saw it is not told. */
  'delivered',
  /** The recipient opened it; who does not tell leaves it at delivered. */
  'read',
  /** Refused for good, or given up. `error` says why, `error_code` in the provider's own terms. */
  'failed',
] as const;
export type ChatStatus = (typeof CHAT_STATUSES)[number];

export const CHAT_TYPES = ['text', 'template', 'image', 'document'] as const;
export type ChatType = (typeof CHAT_TYPES)[number];

/** The names of chat-app providers, as settings and columns write them. */
export const CHAT_PROVIDERS = ['twilio', 'meta'] as const;
export type ChatProviderName = (typeof CHAT_PROVIDERS)[number];

/** Who confirmed that a number belongs to the organization that connected it. */
export type NumberVerifier = 'operator' | 'provider';

/** A number and the credentials that somebody claims it with. */
export interface NumberClaim {
  readonly provider: ChatProviderName;
  /** E.164. */
  readonly number: string;
  /** What Meta calls the number. */
  readonly phone_number_id: string | null;
  /** The Twilio account of its own; null for the one of the settings. */
  readonly account_sid: string | null;
  readonly token: string;
}

/** A provider's answer to whether a number belongs to the account of a token. */
export type NumberVerification =
  | { readonly kind: 'verified' }
  /** The token does not open the account, or the account does not have the number. */
  | { readonly kind: 'refused'; readonly param: string; readonly message: string }
  /** The provider gave no answer; the same question may be answered later. */
  | { readonly kind: 'unavailable'; readonly provider: string };

/** What a template is called and filled with; `components` is passed on as it was given. */
export interface ChatTemplate {
  readonly name: string;
  readonly language: string | { readonly code: string };
  readonly components?: unknown;
}

/** What a message says, as it was given. Of template, image and document at most one is there, as the type says. */
export interface ChatContent {
  /** The message of a text; else the caption of a file that has none. */
  readonly text: string | null;
  readonly preview_url: boolean;
  readonly template: ChatTemplate | null;
  readonly image: { readonly link: string; readonly caption?: string | null } | null;
  readonly document: {
    readonly link: string;
    readonly caption?: string | null;
    readonly filename?: string | null;
  } | null;
}

/** A chat-app message as a provider gets it. */
export interface OutgoingChat {
  readonly id: string;
  readonly type: ChatType;
  /** E.164. */
  readonly from: string;
  /** E.164. */
  readonly to: string;
  readonly content: ChatContent;
}

/** What stands below an image or document: its own caption, else the text beside it; null when there is none. */
export function captionOf({ text, image, document }: ChatContent): string | null {
  return ((image ?? document)?.caption ?? text) || null;
}
