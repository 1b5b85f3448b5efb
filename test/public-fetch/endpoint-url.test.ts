import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { endpointUrl } from '../../src/public-fetch/endpoint-url.ts';
import { parseRanges } from '../../src/lib/ip-ranges.ts';
import { Unfetchable } from '../../src/public-fetch/unfetchable.ts';

const NONE = parseRanges([]);
const LOOPBACK = parseRanges(['127.0.0.0/8', '::1']);

describe('the URL of an endpoint (decisions 7.4)', () => {
  for (const url of [
    'https://example.com',
    'https://example.com:8443/a/b?token=x',
    'https://bücher.example/',
    'https://8.8.8.8/x',
    'https://[2606:4700::1111]/',
  ]) {
    test(`${url} is accepted`, () => {
      assert.equal(endpointUrl(url, NONE).protocol, 'https:');
    });
  }

  for (const url of [
    'http://example.com/',
    'javascript:alert(1)',
    'nope',
    '',
    'https://',
    'https://user:password@example.com/',
    ' https://example.com/',
    'https://exam\nple.com/',
    'https://example.com/\uD83D',
    'https://example.com/a b',
    'https://example.com:5432/',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://127.0.0.1/',
    'https://①②⑦.⓪.⓪.①/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://10.0.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://[fd00::1]/',
  ]) {
    test(`${JSON.stringify(url)} is refused`, () => {
      assert.throws(() => endpointUrl(url, NONE), Unfetchable);
    });
  }

  test('http is accepted only where the operator allows it', () => {
    for (const url of ['http://127.0.0.1:4000/x', 'http://[::1]/', 'http://localhost:4000/', 'https://localhost/']) {
      assert.equal(endpointUrl(url, LOOPBACK).href, new URL(url).href);
    }
    for (const url of ['http://8.8.8.8/', 'http://10.0.0.1/', 'https://10.0.0.1/', 'http://[::2]/']) {
      assert.throws(() => endpointUrl(url, LOOPBACK), Unfetchable, url);
    }
    for (const url of ['http://localhost/', 'https://localhost/']) {
      assert.throws(() => endpointUrl(url, parseRanges(['10.0.0.0/8'])), Unfetchable, url);
    }
    // Its addresses are looked at when it is connected to.
    assert.equal(endpointUrl('http://hooks.internal/', LOOPBACK).hostname, 'hooks.internal');
  });
});
