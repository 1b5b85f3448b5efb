import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { CHAT_STATUSES } from '../../src/domain/chat/chat.ts';
import type { MessageChannel, MessageStatus } from '../../src/domain/messages/message.ts';
import {
  type MessageChange,
  messageTransition,
  nextMessageStatus,
  REPORTED_CHANGES,
  type ReportedChange,
} from '../../src/domain/messages/states.ts';
import { SMS_STATUSES } from '../../src/domain/sms/sms.ts';

const STATUSES: Readonly<Record<MessageChannel, readonly MessageStatus[]>> = {
  chatapp: CHAT_STATUSES,
  sms: SMS_STATUSES,
};

type Effects = Partial<Record<MessageStatus, MessageStatus | 'recorded'>>;

const OWN: Record<Exclude<MessageChange, ReportedChange>, Effects> = {
  rescheduled: { scheduled: 'scheduled' },
  canceled: { scheduled: 'canceled' },
  claimed: { scheduled: 'queued' },
  suppressed: { queued: 'suppressed' },
  failed: { queued: 'failed' },
};

/** What each change makes of a status. A status that is missing does not change, and the timeline has no event. */
const EXPECTED: Readonly<Record<MessageChannel, Partial<Record<MessageChange, Effects>>>> = {
  chatapp: {
    ...OWN,
    sent: { queued: 'sent', sent: 'recorded', failed: 'recorded', delivered: 'recorded', read: 'recorded' },
    delivered: { queued: 'delivered', sent: 'delivered', failed: 'delivered', delivered: 'recorded', read: 'recorded' },
    read: { queued: 'read', sent: 'read', failed: 'read', delivered: 'read', read: 'recorded' },
    failureReported: { queued: 'failed', sent: 'failed', failed: 'recorded', delivered: 'recorded', read: 'recorded' },
  },
  sms: {
    ...OWN,
    sent: { queued: 'sent', sent: 'recorded', failed: 'recorded', undelivered: 'recorded', delivered: 'recorded' },
    failureReported: {
      queued: 'failed',
      sent: 'failed',
      failed: 'recorded',
      undelivered: 'recorded',
      delivered: 'recorded',
    },
    undelivered: {
      queued: 'undelivered',
      sent: 'undelivered',
      failed: 'undelivered',
      undelivered: 'recorded',
      delivered: 'recorded',
    },
    delivered: {
      queued: 'delivered',
      sent: 'delivered',
      failed: 'delivered',
      undelivered: 'delivered',
      delivered: 'recorded',
    },
  },
};

for (const channel of ['chatapp', 'sms'] as const) {
  describe(`states of a message by ${channel}`, () => {
    for (const change of [...(Object.keys(OWN) as MessageChange[]), ...REPORTED_CHANGES]) {
      for (const status of STATUSES[channel]) {
        const expected = EXPECTED[channel][change]?.[status];
        it(`${change} finds ${status}: ${expected ?? 'nothing'}`, () => {
          const transition = messageTransition(channel, change);
          const next = expected === undefined || expected === 'recorded' ? status : expected;
          assert.equal(nextMessageStatus(status, transition), next);
          assert.equal(transition.from.includes(status), expected !== undefined && expected !== 'recorded');
          assert.equal(transition.recordOnly.includes(status), expected === 'recorded');
        });
      }
    }

    it('a late report never lowers the state, and the order of reports decides nothing', () => {
      const reports = fc.array(fc.constantFrom(...REPORTED_CHANGES), { maxLength: 8 });
      const after = (changes: readonly MessageChange[]) =>
        changes.reduce<MessageStatus>((status, change) => {
          return nextMessageStatus(status, messageTransition(channel, change));
        }, 'queued');
      fc.assert(
        fc.property(
          reports.chain((changes) =>
            fc.tuple(fc.constant(changes), fc.shuffledSubarray(changes, { minLength: changes.length })),
          ),
          ([changes, shuffled]) => {
            assert.equal(after(shuffled), after(changes));
            assert.equal(after([...changes, ...shuffled]), after(changes));
          },
        ),
      );
    });
  });
}
