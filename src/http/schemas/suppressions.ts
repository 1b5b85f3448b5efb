import { Type } from 'typebox';
import { BOUNCE_REASONS } from '../../domain/email/email.ts';
import { SUPPRESSIONS_PER_REQUEST } from '../../domain/limits.ts';
import { SUPPRESSION_ORIGINS } from '../../domain/email/suppression.ts';
import { enumOf, nullable, objectOf, optional, ruledObject, Timestamp } from './common.ts';
import { formatNumber } from '../../lib/text.ts';

const EXAMPLE = 'ada@example.net';

export const SuppressBody = ruledObject('one-or-many', 'CreateSuppressionsRequest', null, {
  email: optional('string', {
    'x-rule': 'mailbox',
    description: 'One address; email or emails, not both',
    examples: [EXAMPLE, `Ada <${EXAMPLE}>`],
  }),
  emails: optional<string[]>('array', {
    minItems: 1,
    maxItems: SUPPRESSIONS_PER_REQUEST,
    items: { type: 'string', 'x-rule': 'mailbox' },
    description: `1 to ${formatNumber(SUPPRESSIONS_PER_REQUEST)} addresses`,
    examples: [[EXAMPLE, 'grace@example.net']],
  }),
});

export const SuppressionBody = objectOf('Suppression', {
  id: Type.String({ examples: ['sup_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
  email: Type.String({ description: 'In lower case', examples: [EXAMPLE] }),
  origin: enumOf(
    SUPPRESSION_ORIGINS,
    'SuppressionOrigin',
    'Why the address is on the list. With `unsubscribe` it gets no marketing email, with any other origin no email.',
  ),
  reason: nullable(enumOf(BOUNCE_REASONS, 'BounceReason'), 'The bounce_reason, if a bounce caused it'),
  email_id: nullable(Type.String(), 'The email that caused it, if one did'),
  created_at: Timestamp,
});

/** The response is one entry for `email`, and a list of entries for `emails`. */
export const Suppressed = Type.Union([
  SuppressionBody,
  objectOf('CreatedSuppressions', { suppressions: Type.Array(SuppressionBody) }),
]);

export const SuppressionFilters = {
  origin: Type.Optional(enumOf(SUPPRESSION_ORIGINS, 'SuppressionOrigin', 'Only those of this origin', 'bounce')),
  email: Type.Optional(
    Type.String({
      'x-rule': 'mailbox-in-query',
      description: 'Only those of this address, in any case',
      examples: [EXAMPLE],
    }),
  ),
};

export const SuppressionParams = Type.Object({
  idOrEmail: Type.String({
    description: 'An id, or an address in any case; encode + as %2B if your client sends it as a space',
    examples: [EXAMPLE],
  }),
});
