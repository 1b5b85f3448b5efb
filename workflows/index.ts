export { cancel, deliverEmail, reschedule } from './deliver-email.ts';
export type { DeliverEmail, Schedule } from './deliver-email.ts';
export { deliverGroup } from './deliver-group.ts';
export type { DeliverGroup } from './deliver-group.ts';
export { upkeep } from './upkeep.ts';
export type { Chore } from './upkeep.ts';
export { wake, webhookEndpoint } from './webhook-endpoint.ts';
export type { WebhookEndpoint } from './webhook-endpoint.ts';
