export type { EmailDeps, Member } from './contract.ts';
export { type Delivery, type EmailActivities, makeEmailActivities } from './email.ts';
export { type EmailFiles, makeEmailFiles } from './files.ts';
export { type GroupActivities, type GroupDelivery, makeGroupActivities } from './group.ts';
export { makeUpkeepActivities, type UpkeepActivities } from './upkeep.ts';
export type { Drained, WebhookDeps } from './webhook-contract.ts';
export { makeWebhookActivities, type WebhookActivities } from './webhooks.ts';
