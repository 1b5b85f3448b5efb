import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { domainName } from '../../src/accounts/domain-name.ts';
import { ServiceError } from '../../src/domain/errors.ts';

describe('the name of a domain', () => {
  for (const [text, name] of [
    ['Acme-Test.com', 'acme-test.com'],
    ['https://www.Acme-Test.com/', 'www.acme-test.com'],
    ['HTTP://acme-test.com:8080/shop?q=a@b.example#top', 'acme-test.com'],
    [' https://user:word@mail.acme-test.com ', 'mail.acme-test.com'],
    ['https://bücher.example/über', 'xn--bcher-kva.example'],
  ] as const) {
    it(`is ${name} in ${text}`, () => {
      assert.equal(domainName(text, 'name'), name);
    });
  }

  for (const text of [
    'https://',
    'https://localhost/',
    'https://[::1]/',
    'ftp://acme-test.com',
    'a.example\n',
    '//a.example',
  ]) {
    it(`is refused with the text as it was entered: ${JSON.stringify(text)}`, () => {
      const message = `name: "${text}" is not a domain name`;
      const isRefusal = (error: unknown) =>
        error instanceof ServiceError && error.param === 'name' && error.message === message;
      assert.throws(() => domainName(text, 'name'), isRefusal);
    });
  }
});
