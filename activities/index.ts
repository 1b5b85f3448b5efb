export { type DomainActivities, makeDomainActivities } from './domains.ts';
export type { Delivery } from './delivery.ts';
export { type EmailActivities, makeEmailActivities } from './email.ts';
export { type GroupActivities, type GroupDelivery, makeGroupActivities } from './group.ts';
export { makeMessageActivities, type MessageActivities } from './messages.ts';
export { makeUpkeepActivities, type UpkeepActivities } from './upkeep.ts';
