export type { EmailDeps, Member } from './contract.ts';
export { type Delivery, type EmailActivities, makeEmailActivities } from './email.ts';
