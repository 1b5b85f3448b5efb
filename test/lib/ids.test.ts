import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createdAt, newId } from '../../src/lib/ids.ts';

/** Text in byte order, as the columns of ids are collated. */
function byteOrder(ids: readonly string[]): string[] {
  return [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

describe('ids', () => {
  it('are a prefix and 26 characters of lower-case base32', () => {
    const now = Date.now();
    assert.match(newId('evt', now), /^evt_[0-9a-hjkmnp-tv-z]{26}$/);
  });

  for (const [clock, steps] of [
    ['stands still', [0]],
    ['steps back and forth', [0, 5, -30_000, 2, -1]],
  ] as const) {
    it(`are unique and sort by creation when the clock ${clock}`, () => {
      const now = Date.now();
      const ids = Array.from({ length: 10_000 }, (_, index) => newId('em', now + (steps[index % steps.length] ?? 0)));
      assert.deepEqual(byteOrder(ids), ids);
      assert.equal(new Set(ids).size, ids.length);
    });
  }

  it('sort by time over the years, and begin with it', () => {
    const now = Date.now();
    const years = Array.from({ length: 50 }, (_, year) => newId('em', now + year * 365 * 86_400_000));
    assert.deepEqual(byteOrder(years), years);
    const digits = Array.from((years[0] as string).slice('em_'.length, 'em_'.length + 10));
    const time = digits.reduce((sum, digit) => sum * 32 + '0123456789abcdefghjkmnpqrstvwxyz'.indexOf(digit), 0);
    assert.ok(Math.abs(time - now) <= 3_600_000);
  });

  it('follow a clock that is set right after it was wrong by years', () => {
    const now = Date.now();
    newId('em', now + 50 * 365 * 86_400_000);
    const id = newId('em', now);
    assert.equal(createdAt(id), now);
    assert.ok(newId('em', now - 1_000) > id, 'a small step back keeps the order');
  });

  it('share one order over all prefixes', () => {
    const now = Date.now() + 100 * 365 * 86_400_000;
    const parts = Array.from(
      { length: 1_000 },
      (_, index) => newId(index % 2 ? 'em' : 'evt', now).split('_')[1] as string,
    );
    assert.deepEqual(byteOrder(parts), parts);
  });
});
