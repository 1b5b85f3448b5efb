import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { domainToUnicode } from 'node:url';
import { parseDomain, parseMailbox } from '../../src/domain/email/address.ts';

/** 56 letters whose A-label has 63. */
const LONGEST_U_LABEL = `${'a'.repeat(55)}ü`;

const ACCEPTED: readonly (readonly [title: string, text: string, domain: string])[] = [
  ['upper case', 'EXAMPLE.COM', 'example.com'],
  ['a label that only begins with a digit', '0xyz.1com', '0xyz.1com'],
  ['hyphens in the third and fourth place', 'r3--sn.example', 'r3--sn.example'],
  ['a label of 63', `${'a'.repeat(63)}.com`, `${'a'.repeat(63)}.com`],
  ['252 characters', `${'a.'.repeat(124)}name`, `${'a.'.repeat(124)}name`],
  ['Unicode in upper case', 'BÜCHER.EXAMPLE', 'xn--bcher-kva.example'],
  ['Unicode as letter and mark', 'bu\u0308cher.example', 'xn--bcher-kva.example'],
  ['an A-label in upper case', 'XN--BCHER-KVA.EXAMPLE', 'xn--bcher-kva.example'],
  ['a sharp s as itself', 'straße.example', 'xn--strae-oqa.example'],
  ['a label of 63 as A-label', `${LONGEST_U_LABEL}.example`, `xn--${'a'.repeat(55)}-8yf.example`],
  ['a top-level domain in Unicode', 'пример.рф', 'xn--e1afmkfd.xn--p1ai'],
  ['the other three full stops of Unicode as dots', 'a。b．c｡example', 'a.b.c.example'],
  ['right-to-left letters', 'דוגמה.example', 'xn--6dbbec0c.example'],
  ['full-width letters, as what they stand for', 'ｅｘａｍｐｌｅ.com', 'example.com'],
  ['the Kelvin sign, as what it stands for', 'boo\u212A.example', 'book.example'],
];

const REFUSED: readonly (readonly [title: string, text: string])[] = [
  ['nothing', ''],
  ['no dot', 'localhost'],
  ['a dot alone', '.'],
  ['an empty label', 'a..example'],
  ['a dot at the beginning', '.example.com'],
  ['a dot at the end', 'example.com.'],
  ['a label of 64', `${'a'.repeat(64)}.com`],
  ['a label of 64 as A-label', `a${LONGEST_U_LABEL}.example`],
  ['253 characters', `${'a.'.repeat(124)}names`],
  ['a hyphen at the beginning of a label', '-a.example'],
  ['a hyphen at the end of a label', 'a-.example'],
  ['a hyphen before Unicode', '-bücher.example'],
  ['a hyphen after Unicode', 'bücher-.example'],
  ['a hyphen at the edge of what an A-label stands for', 'xn---bcher-4ya.example'],
  ['a hyphen at the other edge of what an A-label stands for', 'xn--bcher--3ya.example'],
  ['an empty A-label', 'xn--.example'],
  ['an A-label that is no Punycode', 'xn--a.example'],
  ['an A-label of ASCII', 'xn--abc-.example'],
  ['an A-label of an upper-case letter', 'xn--bcher-2pa.example'],
  ['an A-label of a zero-width joiner', 'xn--ab-m1t.example'],
  ['an IPv4 address', '127.0.0.1'],
  ['an IPv4 address in hexadecimal', '0x7f.0x0.0x0.0x1'],
  ['an IPv4 address in full-width digits', '１２７.０.０.１'],
  ['an IPv4 address in full-width hexadecimal', '０ｘ７ｆ.１'],
  ['a last label of digits', 'example.123'],
  ['a last label that is an empty hexadecimal number', 'example.0x'],
  ['a percent-encoded dot in Unicode', 'bücher%2eexample'],
  ['a percent sign of full width', 'bücher％2eexample'],
  ['a soft hyphen', 'exa\u00ADmple.com'],
  ['a joiner that IDNA allows', 'क्\u200Dष.example'],
  ['letters of both directions in one label', 'אa.example'],
  ['a mark at the beginning of a label', '\u0301a.example'],
  ['an ellipsis', 'a…b.example'],
  ['an account-of sign, which holds a slash', 'a℀b.example'],
  ...Array.from('!"#$%&\'()*+,/:;<=>?@[\\]^_`{|}~ ').flatMap((character): [string, string][] => [
    [`${character} in ASCII`, `exa${character}mple.com`],
    [`${character} in Unicode`, `bü${character}cher.example`],
  ]),
  ...Array.from('！＃／：？＠［＼］＿').map((wide): [string, string] => [wide, `bü${wide}cher.example`]),
  ['a no-break space', 'exa\u00A0mple.com'],
  ['a lone surrogate', 'exa\uD800mple.com'],
];

describe('domains', () => {
  for (const [title, text, domain] of ACCEPTED) {
    it(`accepts ${title}`, () => {
      assert.equal(parseDomain(text), domain);
      assert.deepEqual(parseMailbox(`a@${text}`), { name: null, local: 'a', domain, address: `a@${domain}` });
    });
  }
  for (const [title, text] of REFUSED) {
    it(`returns undefined for ${title}`, () => {
      assert.equal(parseDomain(text), undefined);
      assert.equal(typeof parseMailbox(`Ada <a@${text}>`), 'string');
    });
  }

  it('does not convert text that is too long for a domain', () => {
    // Converting it takes more than a second.
    const text = 'ﷺ'.repeat(5_000_000);
    const began = process.cpuUsage();
    assert.equal(parseDomain(text), undefined);
    assert.ok(process.cpuUsage(began).user < 500_000);
  });

  it('returns an ASCII domain or undefined for every code point', () => {
    // Planes 4 to 13 are empty.
    const planes = [0, 1, 2, 3, 14].flatMap((plane) => [plane * 0x10000, (plane + 1) * 0x10000] as const);
    for (let i = 0; i < planes.length; i += 2) {
      for (let code = planes[i] as number; code < (planes[i + 1] as number); code++) {
        const text = `a${String.fromCodePoint(code)}b.example`;
        const domain = parseDomain(text);
        if (domain === undefined) continue;
        if (!/^[a-z0-9-]+\.[a-z0-9-]+$/.test(domain)) {
          assert.ok('.。．｡'.includes(String.fromCodePoint(code)), `U+${code.toString(16)} became ${domain}`);
          assert.equal(domain, 'a.b.example');
        }
        if (code > 0x7f) assert.equal(parseDomain(domainToUnicode(domain)), domain, `U+${code.toString(16)}`);
      }
    }
  });
});
