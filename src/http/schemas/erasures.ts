import { Type } from 'typebox';
import { closedObject, nullable, objectOf, optional } from './common.ts';

export const EraseBody = closedObject('EraseRecipientRequest', null, {
  email: Type.String({
    'x-rule': 'mailbox',
    description: 'The address to erase',
    examples: ['ada@example.net'],
  }),
  cursor: optional('string', {
    description: 'The next_cursor of the previous response, to continue with the same address',
  }),
});

const count = (description: string) => Type.Integer({ description });

export const Erasure = objectOf('Erasure', {
  report: Type.Object(
    {
      emails: count('Emails in whose recipients a placeholder replaced the address'),
      contents: count('Emails to this recipient alone whose bodies and headers were erased'),
      files: count('Files of those emails'),
      events: count('Entries of timelines'),
      recipients: count('States of single recipients'),
      attempts: count("Providers' replies that named the address"),
      webhook_events: count('Webhook events'),
      audit_entries: count('Entries of the audit log'),
      provider_callbacks: count('Callbacks about no known email, deleted'),
      suppressions: count('Suppressions that a keyed hash has replaced'),
    },
    { description: 'The changes of this request' },
  ),
  has_more: Type.Boolean({ description: 'True if more is to be erased: repeat the request with next_cursor' }),
  next_cursor: nullable(Type.String()),
});
