/** The exports of `@sendwright/client`, which depends only on Node's own modules. */
export type {
  ApiKey,
  Attachment,
  Batch,
  BatchMember,
  BounceReason,
  ChatMessage,
  ChatNumber,
  ChatRequest,
  Delivery,
  Domain,
  Email,
  EmailRequest,
  EmailStatus,
  EmailSummary,
  EventType,
  Sms,
  SmsRequest,
  SmsSender,
  Statistics,
  Suppression,
  Webhook,
  WebhookEvent,
} from './api.ts';
export { type ErrorCode, type Fault, SendwrightError } from './errors.ts';
export type { SendOptions } from './http.ts';
export type { List } from './list.ts';
export type { Options } from './options.ts';
export { Sendwright } from './sendwright.ts';
export { verifyWebhook, type VerifyOptions, type WebhookHeaders, WebhookVerificationError } from './verify-webhook.ts';
