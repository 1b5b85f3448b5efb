export { type ChatActivities, type ChatDelivery, makeChatActivities } from './chat.ts';
export { type DomainActivities, makeDomainActivities } from './domains.ts';
export { type Delivery, type EmailActivities, makeEmailActivities } from './email.ts';
export { type GroupActivities, type GroupDelivery, makeGroupActivities } from './group.ts';
export { makeUpkeepActivities, type UpkeepActivities } from './upkeep.ts';
