export {
  type Delivery,
  type EmailActivities,
  makeEmailActivities,
  makeMessageActivities,
  type MessageActivities,
} from './delivery.ts';
export type { GroupDelivery } from '../src/delivery/group.ts';
export { type GroupActivities, makeGroupActivities, makeMessageGroupActivities } from './group.ts';
export { makeUpkeepActivities, type UpkeepActivities } from './upkeep.ts';
