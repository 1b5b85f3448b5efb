import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { newId } from '../../src/lib/ids.ts';
import { clickUrl, makeTrackingTokens, trackableUrl } from '../../src/domain/email/tracked-links.ts';

const SECRET = 'a secret key for tracking links in tests';
const tokens = makeTrackingTokens(SECRET);
const email = { emailId: newId('em', 1), recipient: 7, sentAt: 1_790_000_000 };
const URL = 'https://shop.example/p?a=1&b=2#c';

describe('a token of a tracking link', () => {
  it('is read as it was made, in every process with the same secret', () => {
    for (const recipient of [0, 149, null]) {
      const made = { ...email, recipient };
      assert.deepEqual(tokens.readOpen(makeTrackingTokens(SECRET).makeOpen(made)), made);
      assert.deepEqual(tokens.readClick(makeTrackingTokens(SECRET).makeClick(made, URL)), { ...made, url: URL });
    }
  });

  it('contains any URL exactly', () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
        const target = trackableUrl(url);
        assert.equal(target, url);
        assert.equal(tokens.readClick(tokens.makeClick(email, url))?.url, url);
      }),
    );
  });

  it('is valid for its own kind and secret only, and also after the key was rotated', () => {
    const [open, click] = [tokens.makeOpen(email), tokens.makeClick(email, URL)];
    assert.equal(tokens.readClick(open), undefined);
    assert.equal(tokens.readOpen(click), undefined);
    const other = makeTrackingTokens(`${SECRET}s`);
    assert.equal(other.readOpen(open) ?? other.readClick(click), undefined);
    const rotated = makeTrackingTokens([`${SECRET}s`, SECRET]);
    assert.deepEqual(rotated.readOpen(open), email);
  });

  it('is none when any of its characters is another one, is missing or is added', () => {
    const alphabet = 'AZaz09-_=+/ .%\0é';
    const isRead = (token: string) => (tokens.readClick(token) ?? tokens.readOpen(token)) !== undefined;
    for (const token of [tokens.makeOpen(email), tokens.makeClick(email, URL)]) {
      assert.ok(isRead(token));
      for (let at = 0; at <= token.length; at++) {
        const [before, after] = [token.slice(0, at), token.slice(at)];
        if (after !== '') assert.ok(!isRead(before + after.slice(1)));
        for (const character of alphabet) {
          if (character !== after[0]) assert.ok(!isRead(before + character + after.slice(1)), before + character);
          assert.ok(!isRead(before + character + after), before + character);
        }
      }
    }
    for (const token of ['', '.', 'em_x', '..........', 'a'.repeat(10_000)]) assert.ok(!isRead(token));
  });

  it('leads to http and https only, with a target that is a valid header', () => {
    for (const value of [
      'javascript:alert(1)',
      'data:text/html,x',
      'ftp://x.example',
      'http:x',
      '//x.example',
      'https://[',
      '',
    ]) {
      assert.equal(trackableUrl(value), undefined, value);
    }
    for (const [value, url] of [
      ['https://x.example/a\r\nSet-Cookie: a=b', 'https://x.example/aSet-Cookie:%20a=b'],
      ['\n https://x.example/ \t', 'https://x.example/'],
      ['https://bücher.example/ü', 'https://xn--bcher-kva.example/%C3%BC'],
      ['HTTP://X.example', 'HTTP://X.example'],
    ] as const) {
      assert.equal(trackableUrl(value), url);
    }
  });

  it('is not made for a URL that would become too long for mail clients', () => {
    const ofLength = (length: number) =>
      clickUrl('https://mail.example', tokens, email, `https://x.example/${'a'.repeat(length)}`);
    assert.ok((ofLength(1_300)?.length ?? 0) > 1_700);
    assert.equal(ofLength(1_500), undefined);
  });
});
