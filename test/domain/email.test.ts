import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BOUNCE_REASONS, EMAIL_STATUSES } from '../../src/domain/email/email.ts';

// Copied by hand from the tables of the interface: a change there is a change of the contract.
describe('the words of the contract', () => {
  it('are its statuses, in its order', () => {
    const statuses =
      'queued scheduled sent delivery_delayed delivered opened clicked bounced complained suppressed canceled rejected failed';
    assert.deepEqual(EMAIL_STATUSES, statuses.split(' '));
  });

  it('are its bounce reasons, in its order', () => {
    const suppressing = 'mailbox_not_found mailbox_inactive dns_failure policy_block provider_suppressed';
    const others =
      'mailbox_full spam_block reputation_block authentication_failure rate_limited message_too_large content_rejected';
    assert.deepEqual(BOUNCE_REASONS, `${suppressing} ${others} unknown`.split(' '));
  });
});
