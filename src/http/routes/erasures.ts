import type { Static } from 'typebox';
import { parsePhone } from '../../domain/chat/phone.ts';
import { requireAddress } from '../../domain/email/address.ts';
import { requireValid, ServiceError } from '../../domain/errors.ts';
import { eraseRecipient, parsePosition, type Recipient } from '../../intake/erasure.ts';
import { route } from '../route.ts';
import { EraseBody, Erasure } from '../schemas/erasures.ts';

export const erase = route('eraseRecipient', 'Erase a recipient', {
  description:
    'Replaces an address or a telephone number by a placeholder in messages, timelines, webhook events and the audit log, and ' +
    'erases the content of messages that went to it alone. It gets no more messages: a keyed hash of it remains. A request works for ' +
    'a few seconds; while `has_more` is true, repeat the request with `next_cursor`. Erasing again changes nothing.',
  body: EraseBody,
  response: { 200: Erasure },
  handler: async (deps, { orgId, body }) => {
    const recipient = recipientOf(body);
    const listing = { list: 'erasures', orgId, filters: { ...recipient } };
    const opened = body.cursor == null ? null : deps.cursors.open(listing, body.cursor);
    const position = opened && parsePosition(recipient, opened.id, opened.created_at);
    if (position === undefined)
      throw new ServiceError('validation_error', 'must be the next_cursor of an erasure', 'cursor');
    const { report, next } = await eraseRecipient(deps, orgId, recipient, position);
    const cursor = next && deps.cursors.seal(listing, { created_at: next.after, id: next.phase });
    return { report, has_more: cursor !== null, next_cursor: cursor };
  },
});

/** Returns the recipient of a body that the rule `email-or-phone` has validated. @throws ServiceError validation_error */
function recipientOf({ email, phone }: Static<typeof EraseBody>): Recipient {
  if (phone != null) return { phone: requireValid(parsePhone(phone), 'phone').number };
  return { email: requireAddress(email ?? '', 'email') };
}
