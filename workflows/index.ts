export { cancel, deliverEmail, reschedule } from './deliver-email.ts';
export type { DeliverEmail, Schedule } from './deliver-email.ts';
