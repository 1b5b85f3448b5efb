import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { CHAT_STATUSES, type ChatStatus } from '../../src/domain/chat/chat.ts';
import { CHAT_RANKS, CHAT_TRANSITIONS, type ChatChange, nextChatStatus } from '../../src/domain/chat/states.ts';

/** What each change makes of queued, sent, failed, delivered and read; lower-case where it is noted at least. */
const EXPECTED: Readonly<Record<ChatChange, readonly (ChatStatus | 'noted' | 'nothing')[]>> = {
  sent: ['sent', 'noted', 'noted', 'noted', 'noted'],
  delivered: ['delivered', 'delivered', 'delivered', 'noted', 'noted'],
  read: ['read', 'read', 'read', 'read', 'noted'],
  undelivered: ['failed', 'failed', 'noted', 'noted', 'noted'],
  failed: ['failed', 'nothing', 'nothing', 'nothing', 'nothing'],
};

describe('states of a chat-app message', () => {
  it('are all ranked', () => {
    assert.deepEqual([...CHAT_RANKS].sort(), [...CHAT_STATUSES].sort());
  });

  for (const [change, expected] of Object.entries(EXPECTED) as [ChatChange, readonly string[]][]) {
    for (const [index, status] of CHAT_RANKS.entries()) {
      const wanted = expected[index];
      it(`${change} finds ${status}: ${wanted}`, () => {
        const { from, noted }: { from: readonly ChatStatus[]; noted: readonly ChatStatus[] } = CHAT_TRANSITIONS[change];
        const isMoved = wanted !== 'noted' && wanted !== 'nothing';
        assert.equal(nextChatStatus(status, change), isMoved ? wanted : status);
        assert.equal(from.includes(status), isMoved);
        assert.equal(noted.includes(status), wanted === 'noted');
      });
    }
  }

  it('§6: a late event never lowers the state, and the order of reports decides nothing', () => {
    const reports = fc.array(fc.constantFrom<ChatChange>('sent', 'delivered', 'read', 'undelivered'), { maxLength: 8 });
    const after = (changes: readonly ChatChange[]) => changes.reduce<ChatStatus>(nextChatStatus, 'queued');
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
