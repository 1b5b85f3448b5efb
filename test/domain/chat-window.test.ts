import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isHeldByWindow, isWindowError, type WindowPolicy } from '../../src/domain/chat/window.ts';

const OPEN = { is_open: true, is_known: true };
const CLOSED = { is_open: false, is_known: true };
const UNKNOWN = { is_open: false, is_known: false };

describe('a chat-app message outside the customer-service window', () => {
  const held = (window: typeof OPEN, hasFallback: boolean, policy: WindowPolicy) =>
    isHeldByWindow({ type: 'text', hasFallback }, window, policy);

  for (const [window, hasFallback, known, enforce] of [
    [OPEN, false, false, false],
    [OPEN, true, false, false],
    [CLOSED, false, true, true],
    [CLOSED, true, true, true],
    [UNKNOWN, false, false, true],
    [UNKNOWN, true, true, true],
  ] as const) {
    it(`is held back by the setting: ${JSON.stringify({ ...window, hasFallback, known, enforce })}`, () => {
      assert.equal(held(window, hasFallback, 'known'), known);
      assert.equal(held(window, hasFallback, 'enforce'), enforce);
      assert.equal(held(window, hasFallback, 'off'), false);
    });
  }

  it('is not held back if it is a template', () => {
    for (const policy of ['known', 'enforce', 'off'] as const) {
      assert.equal(isHeldByWindow({ type: 'template', hasFallback: false }, CLOSED, policy), false);
    }
  });

  it('is recognized by the code of its provider', () => {
    assert.deepEqual(
      [isWindowError('meta', '131047'), isWindowError('twilio', '63016'), isWindowError('meta', '63016')],
      [true, true, false],
    );
    assert.equal(isWindowError('twilio', undefined), false);
  });
});
