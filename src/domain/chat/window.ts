import type { ChatProviderName, ChatType } from './chat.ts';

/**
 * Within so many hours after a user's last message, WhatsApp delivers any message to the user; afterwards only templates
 * (https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/send-messages#customer-service-windows).
 */
export const WINDOW_HOURS = 24;

/** The setting `CHATAPP_WINDOW`. */
export const WINDOW_POLICIES = ['known', 'enforce', 'off'] as const;
export type WindowPolicy = (typeof WINDOW_POLICIES)[number];

/** What is known of a recipient's customer-service window. */
export interface Window {
  readonly is_open: boolean;
  /** Whether a message of the user would have reached us: the user wrote before, or the number receives messages for a day. */
  readonly is_known: boolean;
}

/** The error code of a message that was not sent, or not delivered, because the window was closed. */
export const WINDOW_CLOSED = 'window_closed';
export const WINDOW_CLOSED_ERROR =
  'The recipient has not written for 24 hours: only a template may be sent, and the message has no fallback_template.';

/** The providers' own codes for that. */
const PROVIDER_CODES: Readonly<Record<ChatProviderName, string>> = { meta: '131047', twilio: '63016' };

export function isWindowError(provider: string, code: string | null | undefined): boolean {
  return code != null && (PROVIDER_CODES as Readonly<Record<string, string>>)[provider] === code;
}

/**
 * Decides whether a message may not be sent as it is. A message with a fallback is delivered in any case, so the window must
 * be known to be open for it; one without a fallback fails only if it is known to be closed.
 */
export function isHeldByWindow(
  { type, hasFallback }: { readonly type: ChatType; readonly hasFallback: boolean },
  { is_open, is_known }: Window,
  policy: WindowPolicy,
): boolean {
  if (type === 'template' || policy === 'off' || is_open) return false;
  return hasFallback || is_known || policy === 'enforce';
}
