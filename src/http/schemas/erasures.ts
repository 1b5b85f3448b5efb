import { Type } from 'typebox';
import { nullable, objectOf, optional, ruledObject } from './common.ts';

export const EraseBody = ruledObject('email-or-phone', 'EraseRecipientRequest', null, {
  email: optional('string', {
    'x-rule': 'mailbox',
    description: 'The address to erase; email or phone, not both',
    examples: ['ada@example.net'],
  }),
  phone: optional('string', {
    'x-rule': 'phone',
    description: 'The telephone number to erase, in international form',
    examples: ['+14165550123'],
  }),
  cursor: optional('string', {
    description: 'The next_cursor of the previous response, to continue with the same recipient',
  }),
});

const count = (description: string) => Type.Integer({ description });

export const Erasure = objectOf('Erasure', {
  report: Type.Object(
    {
      emails: count('Emails in whose recipients a placeholder replaced the address'),
      messages: count('Chat-app messages and SMS in whose recipient a placeholder replaced the number'),
      contents: count('Messages to this recipient alone whose content was erased'),
      files: count('Files of those emails'),
      events: count('Entries of timelines'),
      recipients: count('States of single recipients'),
      attempts: count("Providers' replies that named the recipient"),
      webhook_events: count('Webhook events'),
      audit_entries: count('Entries of the audit log'),
      provider_callbacks: count('Callbacks about no known email, deleted'),
      suppressions: count('Suppressions and opt-outs that a keyed hash has replaced'),
      received: count('Webhook events of messages from the number, from which what they contain was erased'),
      contacts: count('WhatsApp users who have written from the number, deleted'),
    },
    { description: 'The changes of this request' },
  ),
  has_more: Type.Boolean({ description: 'True if more is to be erased: repeat the request with next_cursor' }),
  next_cursor: nullable(Type.String()),
});
