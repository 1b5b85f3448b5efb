import { requireAddress } from '../../domain/email/address.ts';
import { ServiceError } from '../../domain/errors.ts';
import { eraseRecipient, parsePosition } from '../../intake/erasure.ts';
import { route } from '../route.ts';
import { EraseBody, Erasure } from '../schemas/erasures.ts';

export const erase = route('eraseRecipient', 'Erase a recipient', {
  description:
    'Replaces an address by a placeholder in emails, timelines, webhook events and the audit log, and erases the ' +
    'content of emails that went to it alone. The address gets no more email: a keyed hash of it remains. A request works for ' +
    'a few seconds; while `has_more` is true, repeat the request with `next_cursor`. Erasing again changes nothing.',
  body: EraseBody,
  response: { 200: Erasure },
  handler: async (deps, { orgId, body }) => {
    const email = requireAddress(body.email, 'email');
    const listing = { list: 'erasures', orgId, filters: { email } };
    const opened = body.cursor == null ? null : deps.cursors.open(listing, body.cursor);
    const position = opened && parsePosition(opened.id, opened.created_at);
    if (position === undefined)
      throw new ServiceError('validation_error', 'must be the next_cursor of an erasure', 'cursor');
    const { report, next } = await eraseRecipient(deps, orgId, email, position);
    const cursor = next && deps.cursors.seal(listing, { created_at: next.after, id: next.phase });
    return { report, has_more: cursor !== null, next_cursor: cursor };
  },
});
