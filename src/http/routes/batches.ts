import { ServiceError } from '../../domain/errors.ts';
import { acceptBatch, cancelBatch, noBatch, refuseBadTimes } from '../../intake/batches.ts';
import type { IntakeDeps } from '../../intake/emails.ts';
import { findBatch, listBatches } from '../../store/emails/batches.ts';
import { callerOf, changerOf } from '../plugins/auth.ts';
import { listRoute } from '../list-route.ts';
import { type Route, route } from '../route.ts';
import {
  AcceptedBatch,
  BatchBody,
  BatchesQuery,
  BatchParams,
  CanceledBatch,
  SendBatchBody,
} from '../schemas/batches.ts';
import { IdempotencyHeader } from '../schemas/common.ts';
import { listOf } from '../schemas/lists.ts';
import { toRequest } from './emails.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

const tags = ['Batches'];

export function sendBatch(deps: IntakeDeps): Route {
  const sending = route(
    {
      tags,
      operationId: 'sendBatch',
      summary: 'Send a batch',
      description:
        'Accepts up to 10,000 emails for delivery, all or none. Attachments are not accepted. The limit on the request body ' +
        'holds for the whole batch: 43 MB are about 4.5 kB per email in a batch of 10,000.',
      headers: IdempotencyHeader,
      body: SendBatchBody,
      response: { 202: AcceptedBatch },
    },
    async (request) => {
      const { org_id: orgId, domain_ids: domainIds } = callerOf(request);
      const caller = { orgId, domainIds };
      const { validationError: refusal } = request;
      if (refusal) {
        // The schema accepted the members before, but it does not check times.
        const before = refusedMember(refusal);
        if (before > 0) await refuseBadTimes(deps, caller, request.body.emails.slice(0, before).map(toRequest));
        throw refusal;
      }
      return acceptBatch(deps, caller, request.body.emails.map(toRequest), request.idempotency);
    },
  );
  return { ...sending, attachValidation: true };
}

/** Returns the index of the member that an error is about, or 0 for other errors. */
function refusedMember(refusal: Error): number {
  const param = refusal instanceof ServiceError ? refusal.param : undefined;
  return Number(/^emails\.(\d+)/.exec(param ?? '')?.[1] ?? 0);
}

export function getBatch(deps: IntakeDeps) {
  return route(
    {
      tags,
      operationId: 'getBatch',
      summary: 'Get a batch',
      description: 'How far a batch has come.',
      params: BatchParams,
      response: { 200: BatchBody },
    },
    async (request) => {
      const batch = await findBatch(deps.pool, callerOf(request).org_id, request.params.id);
      if (!batch) throw noBatch();
      return batch;
    },
  );
}

export function listOfBatches({ pool, secretKey }: IntakeDeps & { readonly secretKey: SecretKeys }) {
  return listRoute(
    secretKey,
    'batches',
    {
      tags,
      operationId: 'listBatches',
      summary: 'List batches',
      description: 'Batches with how far each has come, newest first. Follow `next_cursor` until it is null.',
      querystring: BatchesQuery,
      response: { 200: listOf('batches', BatchBody) },
    },
    (request) => ({ find: (after, limit) => listBatches(pool, callerOf(request).org_id, after, limit) }),
  );
}

export function cancelBatchMembers(deps: IntakeDeps) {
  return route(
    {
      tags,
      operationId: 'cancelBatch',
      summary: 'Cancel a batch',
      description: 'Cancels every email of a batch that is still scheduled.',
      params: BatchParams,
      response: { 200: CanceledBatch },
    },
    (request) => cancelBatch(deps, callerOf(request).org_id, request.params.id, changerOf(request)),
  );
}
