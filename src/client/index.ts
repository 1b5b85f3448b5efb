/** What `import … from 'sendwright/client'` gives. It depends on nothing but Node's own modules. */
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
  Suppression,
  Webhook,
  WebhookEvent,
} from './api.ts';
export { type ErrorCode, SendwrightError } from './errors.ts';
export type { Options, SendOptions } from './http.ts';
export type { List } from './list.ts';
export { Sendwright } from './sendwright.ts';
export { verifyWebhook, type VerifyOptions, type WebhookHeaders, WebhookVerificationError } from './verify-webhook.ts';
