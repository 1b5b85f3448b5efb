import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ServiceError } from '../../src/domain/errors.ts';
import { type Listing, makeCursors } from '../../src/http/cursor.ts';

const SECRET = 'a secret key for cursors in tests only';
const { seal, open } = makeCursors(SECRET);
const listing: Listing = { list: 'emails', orgId: 'org_a', filters: { tags: [['a', 'b']], status: null } };
const position = { created_at: '2026-03-01T09:30:00.000Z', id: 'em_01kajc8wz6h3xkq3m1x8e6v5tn' };

function assertRefused(cursor: string, as: Listing = listing, cursors = { open }): void {
  assert.throws(
    () => cursors.open(as, cursor),
    (error) => error instanceof ServiceError && error.code === 'validation_error' && error.param === 'cursor',
    cursor,
  );
}

describe('a cursor', () => {
  it('returns its position in every process with the same secret', () => {
    const cursor = seal(listing, position);
    assert.deepEqual(open(listing, cursor), position);
    assert.deepEqual(makeCursors(SECRET).open(listing, cursor), position);
    assert.equal(makeCursors(SECRET).seal(listing, position), cursor);
  });

  it('is refused for another list, organization, filter or secret', () => {
    const cursor = seal(listing, position);
    assertRefused(cursor, { ...listing, list: 'batches' });
    assertRefused(cursor, { ...listing, orgId: 'org_b' });
    assertRefused(cursor, { ...listing, filters: { ...listing.filters, status: 'sent' } });
    assertRefused(cursor, { ...listing, filters: { tags: [['a', 'c']], status: null } });
    assertRefused(cursor, { ...listing, filters: {} });
    assertRefused(cursor, listing, makeCursors('another secret key for cursors in tests'));
  });

  it('is refused if any character is replaced, missing or added', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ .%\0é';
    const cursor = seal(listing, position);
    for (let at = 0; at <= cursor.length; at++) {
      const [before, after] = [cursor.slice(0, at), cursor.slice(at)];
      if (after !== '') assertRefused(before + after.slice(1));
      for (const character of alphabet) {
        if (character !== after[0]) assertRefused(before + character + after.slice(1));
        assertRefused(before + character + after);
      }
    }
  });

  it('is refused for any other text', () => {
    for (const text of ['', 'x', '0', 'null', '[]', 'AAAA', 'A'.repeat(22), 'A'.repeat(100_000), position.id]) {
      assertRefused(text);
    }
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => assertRefused(text)));
  });

  it('is refused if its parts are shifted between list and organization', () => {
    const cursor = seal({ list: 'a', orgId: 'b', filters: {} }, position);
    assertRefused(cursor, { list: 'a","b', orgId: '', filters: {} });
    assertRefused(cursor, { list: '', orgId: 'a","b', filters: {} });
  });
});
