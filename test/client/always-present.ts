import assert from 'node:assert/strict';
import type { AlwaysPresent } from '../../client/api.ts';

/** The client's types as values: the compiler requires every field of `AlwaysPresent` here, and no others. */
export const ALWAYS_PRESENT: { readonly [Type in keyof AlwaysPresent]: Readonly<Record<AlwaysPresent[Type], true>> } = {
  'email.scheduled': { scheduledAt: true },
  'email.rescheduled': { scheduledAt: true },
  'email.delivery_delayed': { recipient: true },
  'email.delivered': { recipient: true },
  'email.bounced': { recipient: true, error: true, bounceReason: true },
  'email.complained': { recipient: true },
  'email.unsubscribed': { recipient: true },
  'email.rejected': { error: true },
  'email.failed': { error: true },
  'batch.completed': { completedAt: true },
  'chatapp.scheduled': { scheduledAt: true },
  'chatapp.rescheduled': { scheduledAt: true },
  'chatapp.failed': { error: true },
  'sms.scheduled': { scheduledAt: true },
  'sms.rescheduled': { scheduledAt: true },
  'sms.undelivered': { error: true },
  'sms.failed': { error: true },
  'webhook.disabled': { url: true, reason: true },
};

/** Fails when an event lacks a field that the client's types promise. */
export function assertPresent({ type, data }: { readonly type: string; readonly data: object }): void {
  const names = Object.keys((ALWAYS_PRESENT as Readonly<Record<string, object>>)[type] ?? {});
  const missing = names.filter((name) => typeof (data as Readonly<Record<string, unknown>>)[name] !== 'string');
  assert.deepEqual(missing, [], `${type} lacks fields that are not optional in the client: ${JSON.stringify(data)}`);
}
