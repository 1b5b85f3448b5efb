import { Type } from 'typebox';
import { BATCH_STATUSES } from '../../domain/email/batch.ts';
import { EMAIL_STATUSES } from '../../domain/email/email.ts';
import { EMAILS_PER_BATCH } from '../../domain/limits.ts';
import { closedObject, enumOf, nullable, objectOf, Timestamp } from './common.ts';
import { BatchMember } from './emails.ts';
import { formatNumber } from '../../lib/text.ts';

export const SendBatchBody = closedObject('SendBatchRequest', 'A batch', {
  emails: Type.Array(BatchMember, {
    minItems: 1,
    maxItems: EMAILS_PER_BATCH,
    'x-sliced': true,
    description: `1 to ${formatNumber(EMAILS_PER_BATCH)} emails, each optionally with its own time and sender`,
  }),
});

export const AcceptedBatch = objectOf('AcceptedBatch', {
  id: Type.String({ examples: ['bt_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
  total: Type.Integer({ description: 'The number of emails that were queued' }),
  status: Type.Literal('queued'),
  created_at: Timestamp,
});

export const BatchParams = Type.Object({ id: Type.String({ examples: ['bt_01kajc8wz6h3xkq3m1x8e6v5tn'] }) });

const Status = enumOf(
  BATCH_STATUSES,
  'BatchStatus',
  'processing once the first email was sent or has ended, completed when none is queued or scheduled',
);

export const Counts = Type.Object(
  Object.fromEntries(EMAIL_STATUSES.map((status) => [status, Type.Optional(Type.Integer({ minimum: 1 }))])),
  { title: 'EmailCounts', description: 'The number of emails in each status that occurs' },
);

export const BatchBody = objectOf('Batch', {
  id: Type.String(),
  total: Type.Integer(),
  status: Status,
  created_at: Timestamp,
  completed_at: nullable(Timestamp),
  counts: Counts,
});

export const CanceledBatch = objectOf('CanceledBatch', {
  id: Type.String(),
  status: Status,
  canceled: Type.Integer({ description: 'The number of emails that were canceled' }),
});
