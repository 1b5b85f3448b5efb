import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KNOWN_BROWSER_DAYS, makeKnownBrowsers } from '../../src/domain/known-browser.ts';
import { SECRET_KEY } from '../support/secret-key.ts';

const browsers = makeKnownBrowsers(SECRET_KEY);
const NOW = Date.parse('2026-03-01T00:00:00Z');
const EMAIL = 'ada@example.com';

describe('the token of a known browser', () => {
  it('names the browser, also when it is issued again', () => {
    const token = browsers.issue(EMAIL, NOW);
    const id = browsers.read(token, EMAIL, NOW);
    assert.match(id ?? '', /^[\w-]{22}$/);
    assert.equal(browsers.read(browsers.issue(EMAIL, NOW + 5, id), EMAIL, NOW + 5), id);
    assert.notEqual(browsers.read(browsers.issue(EMAIL, NOW), EMAIL, NOW), id);
  });

  it('is worth nothing for another email, under another secret, changed or expired', () => {
    const token = browsers.issue(EMAIL, NOW);
    assert.equal(browsers.read(token, 'eve@example.com', NOW), undefined);
    assert.equal(makeKnownBrowsers('another secret key for tests, long').read(token, EMAIL, NOW), undefined);
    assert.equal(browsers.read(token, EMAIL, NOW + KNOWN_BROWSER_DAYS * 86_400_000), undefined);
    for (let index = 0; index < token.length; index++) {
      const changed = `${token.slice(0, index)}${token[index] === '1' ? '2' : '1'}${token.slice(index + 1)}`;
      assert.equal(browsers.read(changed, EMAIL, NOW), undefined, changed);
    }
    for (const text of ['', '..', `${token}.`, ` ${token}`]) assert.equal(browsers.read(text, EMAIL, NOW), undefined);
  });
});
