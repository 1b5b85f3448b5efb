import { ServiceError } from '../../domain/errors.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';
import type { IntakeDeps } from '../../intake/emails.ts';
import { eraseRecipient, parsePosition } from '../../intake/erasure.ts';
import { listedAddress } from '../../accounts/suppressions.ts';
import type { FileStore } from '../../store/files/file-store.ts';
import { callerOf } from '../plugins/auth.ts';
import { makeCursors } from '../cursor.ts';
import { route } from '../route.ts';
import { EraseBody, Erasure } from '../schemas/erasures.ts';

interface ErasureRoutesDeps extends IntakeDeps {
  readonly files: FileStore;
  readonly secretKey: SecretKeys;
}

export function erase(deps: ErasureRoutesDeps) {
  const cursors = makeCursors(deps.secretKey);
  return route(
    {
      tags: ['Erasures'],
      operationId: 'eraseRecipient',
      summary: 'Erase a recipient',
      description:
        'Replaces an address by a placeholder in emails, timelines, webhook events and the audit log, and erases the ' +
        'content of emails that went to it alone. The address gets no more email: a keyed hash of it remains. A request works for ' +
        'a few seconds; while `has_more` is true, repeat the request with `next_cursor`. Erasing again changes nothing.',
      body: EraseBody,
      response: { 200: Erasure },
    },
    async (request) => {
      const orgId = callerOf(request).org_id;
      const email = listedAddress(request.body.email, 'email');
      const listing = { list: 'erasures', orgId, filters: { email } };
      const opened = request.body.cursor === undefined ? null : cursors.open(listing, request.body.cursor);
      const position = opened && parsePosition(opened.id, opened.created_at);
      if (position === undefined)
        throw new ServiceError('validation_error', 'must be the next_cursor of an erasure', 'cursor');
      const { report, next } = await eraseRecipient(deps, orgId, email, position);
      const cursor = next && cursors.seal(listing, { created_at: next.after, id: next.phase });
      return { report, has_more: cursor !== null, next_cursor: cursor };
    },
  );
}
