import type { ChatProviderName, ChatType } from './chat.ts';

/**
 * For this many hours after a user's last message, WhatsApp delivers any message to the user; afterwards only templates
 * (https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/send-messages#customer-service-windows).
 */
export const WINDOW_HOURS = 24;

/** The setting `CHATAPP_WINDOW`. */
export const WINDOW_POLICIES = ['known', 'enforce', 'off'] as const;
export type WindowPolicy = (typeof WINDOW_POLICIES)[number];

/** The state of a recipient's customer-service window. */
export interface Window {
  readonly is_open: boolean;
  /**
   * True if we would have received a message of the user: the user wrote before, or the number has received messages for a
   * day.
   */
  readonly is_known: boolean;
}

/** The error code of a message that was not sent, or not delivered, because the window was closed. */
export const WINDOW_CLOSED = 'window_closed';
export const WINDOW_CLOSED_ERROR =
  'The recipient has not written for 24 hours: only a template may be sent, and the message has no fallback_template.';

/** The providers' error codes for a closed window. */
const PROVIDER_CODES: Readonly<Record<ChatProviderName, string>> = { meta: '131047', twilio: '63016' };

export function isWindowError(provider: string, code: string | null | undefined): boolean {
  return code != null && (PROVIDER_CODES as Readonly<Record<string, string>>)[provider] === code;
}

/**
 * True if a message must not be sent as it is. A message with a fallback is delivered in any case, so it is held unless the
 * window is known to be open; one without a fallback only if the window is known to be closed.
 */
export function isHeldByWindow(
  { type, hasFallback }: { readonly type: ChatType; readonly hasFallback: boolean },
  { is_open, is_known }: Window,
  policy: WindowPolicy,
): boolean {
  if (type === 'template' || policy === 'off' || is_open) return false;
  return hasFallback || is_known || policy === 'enforce';
}
