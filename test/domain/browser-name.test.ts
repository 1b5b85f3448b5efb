import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browserName } from '../../src/domain/browser-name.ts';

const LIKE_CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36';

for (const [userAgent, name] of [
  ['Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0', 'Firefox on Linux'],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${LIKE_CHROME} Edg/142.0.0.0`, 'Edge on Windows'],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${LIKE_CHROME}`, 'Chrome on Windows'],
  [`Mozilla/5.0 (Linux; Android 10; K) ${LIKE_CHROME}`, 'Chrome on Android'],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
    'Safari on macOS',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0 Mobile/15E148 Safari/604.1',
    'Chrome on iOS',
  ],
  ['curl/8.14.1', 'Unknown browser'],
  ['', 'Unknown browser'],
] as const) {
  test(`names the browser "${name}" of the User-Agent "${userAgent.slice(0, 40)}…${userAgent.slice(-20)}"`, () => {
    assert.equal(browserName(userAgent), name);
  });
}
