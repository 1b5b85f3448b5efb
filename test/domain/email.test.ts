import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BOUNCE_REASONS, EMAIL_STATUSES } from '../../src/domain/email/email.ts';

// Copied by hand from the tables of the interface: a change there is a change of the contract.
describe('the words of the contract', () => {
  it('are its statuses, in its order', () => {
    assert.deepEqual(EMAIL_STATUSES, [
      'queued',
      'scheduled',
      'sent',
      'delivery_delayed',
      'delivered',
      'opened',
      'clicked',
      'bounced',
      'complained',
      'suppressed',
      'canceled',
      'rejected',
      'failed',
    ]);
  });

  it('are its bounce reasons, in its order', () => {
    assert.deepEqual(BOUNCE_REASONS, [
      'mailbox_not_found',
      'mailbox_inactive',
      'dns_failure',
      'policy_block',
      'provider_suppressed',
      'mailbox_full',
      'spam_block',
      'reputation_block',
      'authentication_failure',
      'rate_limited',
      'message_too_large',
      'content_rejected',
      'unknown',
    ]);
  });
});
