export {
  type Delivery,
  type EmailActivities,
  makeEmailActivities,
  makeMessageActivities,
  type MessageActivities,
} from './delivery.ts';
export { type GroupActivities, type GroupDelivery, makeGroupActivities } from './group.ts';
export { makeUpkeepActivities, type UpkeepActivities } from './upkeep.ts';
