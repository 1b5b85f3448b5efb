import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPublicUrl } from '../../src/lib/public-url.ts';

test('distinguishes hosts on the public internet from those that only this machine or its network can reach', () => {
  for (const url of [
    'https://mail.example.com',
    'http://sub.mail.example.co.uk:8080/path',
    'https://8.8.8.8',
    'https://[2606:4700::1111]:8443',
    'https://sendwright.ngrok.io',
  ]) {
    assert.equal(isPublicUrl(url), true, url);
  }
  for (const url of [
    'http://localhost:3000',
    'http://sendwright.localhost:3000',
    'http://127.0.0.1:3000',
    'http://2130706433',
    'http://[::1]:3000',
    'http://[::ffff:10.0.0.1]',
    'http://10.1.2.3',
    'https://192.168.0.10',
    'http://100.64.0.1',
    'http://169.254.169.254',
    'https://[fd00::1]',
    'http://proxy:3000',
    'https://mail.internal',
    'https://mail.home.arpa',
    'https://mail.test',
  ]) {
    assert.equal(isPublicUrl(url), false, url);
  }
});
