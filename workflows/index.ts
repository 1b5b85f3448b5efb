export { cancel, deliverChat, deliverEmail, deliverSms, reschedule } from './deliver-message.ts';
export type { DeliverMessage, Schedule } from './deliver-message.ts';
export { deliverGroup } from './deliver-group.ts';
export type { DeliverGroup, GroupQueue } from './deliver-group.ts';
export { upkeep } from './upkeep.ts';
export type { UpkeepTaskName } from './upkeep.ts';
export { lookAgain, watchDomain } from './watch-domain.ts';
export { wake, webhookEndpoint } from './webhook-endpoint.ts';
export type { WebhookEndpoint } from './webhook-endpoint.ts';
