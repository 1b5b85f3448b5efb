import { requireFound } from '../../domain/errors.ts';
import { acceptBatch, cancelBatch, findBadTime } from '../../intake/batches.ts';
import { findBatch, listBatches } from '../../store/emails/batches.ts';
import { changerOf } from '../plugins/auth.ts';
import { makeClosedSignal } from '../../lib/closed-signal.ts';
import type { ItemError } from '../plugins/validation.ts';
import { listRoute } from '../list-route.ts';
import { route } from '../route.ts';
import { AcceptedBatch, BatchBody, BatchParams, CanceledBatch, SendBatchBody } from '../schemas/batches.ts';
import { IdempotencyHeader } from '../schemas/common.ts';
import { toRequest } from './emails.ts';

export const sendBatch = route('sendBatch', 'Send a batch', {
  description:
    'Accepts up to 10,000 emails for delivery, all or none. Attachments are not accepted. The limit on the request body ' +
    'holds for the whole batch: 43 MB are about 4.5 kB per email in a batch of 10,000.',
  headers: IdempotencyHeader,
  body: SendBatchBody,
  response: { 202: AcceptedBatch },
  handler: async (deps, request, reply) => {
    const sender = changerOf(request);
    const { validationError } = request;
    if (validationError) {
      // The schema has accepted the members before the invalid one, but does not check times, whose errors take precedence.
      const { itemIndex = 0 } = validationError as Partial<ItemError>;
      const before = itemIndex > 0 ? request.body.emails.slice(0, itemIndex).map(toRequest) : [];
      const timeError = before.length > 0 ? await findBadTime(deps, sender, before) : undefined;
      throw timeError?.and([validationError as Partial<ItemError> as ItemError]) ?? validationError;
    }
    return acceptBatch(deps, sender, request.body.emails.map(toRequest), request.idempotency, makeClosedSignal(reply));
  },
  options: { attachValidation: true },
});

export const getBatch = route('getBatch', 'Get a batch', {
  description: 'A batch with its status and the number of its emails in each status.',
  params: BatchParams,
  response: { 200: BatchBody },
  handler: async ({ pool }, { orgId, params }) => requireFound(await findBatch(pool, orgId, params.id), 'batch'),
});

export const list = listRoute('listBatches', 'List batches', {
  name: 'batches',
  item: BatchBody,
  description: 'Batches with their status and counts, newest first. Follow `next_cursor` until it is null.',
  read: ({ pool }, { orgId }, after, limit) => listBatches(pool, orgId, after, limit),
});

export const cancelBatchMembers = route('cancelBatch', 'Cancel a batch', {
  description: 'Cancels every email of a batch that is still scheduled.',
  params: BatchParams,
  response: { 200: CanceledBatch },
  handler: (deps, request) => cancelBatch(deps, request.orgId, request.params.id, changerOf(request)),
});
