import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { domainToUnicode } from 'node:url';
import { parseDomain, parseMailbox } from '../../src/domain/email/address.ts';

/** 56 letters whose A-label has 63. */
const LONGEST_U_LABEL = `${'a'.repeat(55)}ü`;

const ACCEPTED: readonly (readonly [title: string, text: string, domain: string])[] = [
  ['two labels', 'example.com', 'example.com'],
  ['many labels', 'a.b.c.d.e.f.example.com', 'a.b.c.d.e.f.example.com'],
  ['upper case', 'EXAMPLE.COM', 'example.com'],
  ['digits in a label', '4.2.example', '4.2.example'],
  ['a label that only begins with a digit', '0xyz.1com', '0xyz.1com'],
  ['a hyphen inside', 'a-b.example', 'a-b.example'],
  ['hyphens in the third and fourth place', 'r3--sn.example', 'r3--sn.example'],
  ['a label of 63', `${'a'.repeat(63)}.com`, `${'a'.repeat(63)}.com`],
  ['252 characters', `${'a.'.repeat(124)}name`, `${'a.'.repeat(124)}name`],
  ['Unicode', 'bücher.example', 'xn--bcher-kva.example'],
  ['Unicode in upper case', 'BÜCHER.EXAMPLE', 'xn--bcher-kva.example'],
  ['Unicode as letter and mark', 'bu\u0308cher.example', 'xn--bcher-kva.example'],
  ['an A-label', 'xn--bcher-kva.example', 'xn--bcher-kva.example'],
  ['an A-label in upper case', 'XN--BCHER-KVA.EXAMPLE', 'xn--bcher-kva.example'],
  ['a sharp s as itself', 'straße.example', 'xn--strae-oqa.example'],
  ['a label of 63 as A-label', `${LONGEST_U_LABEL}.example`, `xn--${'a'.repeat(55)}-8yf.example`],
  ['a top-level domain in Unicode', 'пример.рф', 'xn--e1afmkfd.xn--p1ai'],
  ['right-to-left letters', 'דוגמה.example', 'xn--6dbbec0c.example'],
  ['full-width letters, as what they stand for', 'ｅｘａｍｐｌｅ.com', 'example.com'],
  ['the Kelvin sign, as what it stands for', 'boo\u212A.example', 'book.example'],
  ['U+3002 as a dot', 'example。com', 'example.com'],
  ['a full-width full stop as a dot', 'example．com', 'example.com'],
  ['a half-width ideographic full stop as a dot', 'example｡com', 'example.com'],
  ['a Cyrillic look-alike, as another domain', 'gооd.com', 'xn--gd-fmca.com'],
  ['a host below a domain, as another domain', 'good.com.evil.com', 'good.com.evil.com'],
];

const REFUSED: readonly (readonly [title: string, text: string])[] = [
  ['nothing', ''],
  ['no dot', 'localhost'],
  ['no dot, in Unicode', 'bücher'],
  ['a dot alone', '.'],
  ['U+3002 alone', '。'],
  ['an empty label', 'a..example'],
  ['an empty label between two kinds of dots', 'a.。example'],
  ['a dot at the beginning', '.example.com'],
  ['a dot at the end', 'example.com.'],
  ['a dot at the end, in Unicode', 'bücher.example.'],
  ['U+3002 at the end', 'example.com。'],
  ['a label of 64', `${'a'.repeat(64)}.com`],
  ['a label of 64 as A-label', `a${LONGEST_U_LABEL}.example`],
  ['253 characters', `${'a.'.repeat(124)}names`],
  ['an underscore', 'a_b.example'],
  ['an underscore in Unicode', 'bü_cher.example'],
  ['a full-width underscore', 'bü＿cher.example'],
  ['a hyphen at the beginning of a label', '-a.example'],
  ['a hyphen at the end of a label', 'a-.example'],
  ['a hyphen at the beginning of the last label', 'a.-example'],
  ['a hyphen at the end of the last label', 'a.example-'],
  ['a hyphen before Unicode', '-bücher.example'],
  ['a hyphen after Unicode', 'bücher-.example'],
  ['a full-width hyphen before Unicode', '－bücher.example'],
  ['a hyphen at the edge of a last label in Unicode', 'example.-рф'],
  ['a hyphen at the edge of what an A-label stands for', 'xn---bcher-4ya.example'],
  ['a hyphen at the other edge of what an A-label stands for', 'xn--bcher--3ya.example'],
  ['an empty A-label', 'xn--.example'],
  ['an A-label that is no Punycode', 'xn--a.example'],
  ['an A-label of ASCII', 'xn--abc-.example'],
  ['an A-label of an upper-case letter', 'xn--bcher-2pa.example'],
  ['an A-label of a zero-width joiner', 'xn--ab-m1t.example'],
  ['an A-label of a zero-width space', 'xn--ab-g1t.example'],
  ['a broken A-label beside a good one', 'xn--bcher-kva.xn--a.example'],
  ['an IPv4 address', '127.0.0.1'],
  ['an IPv4 address in brackets', '[127.0.0.1]'],
  ['an IPv4 address as one number', '2130706433'],
  ['an IPv4 address as one hexadecimal number', '0x7f000001'],
  ['an IPv4 address in hexadecimal', '0x7f.0x0.0x0.0x1'],
  ['an IPv4 address in octal', '0177.0.0.01'],
  ['an IPv4 address of two parts', '127.1'],
  ['an IPv4 address of mixed parts', '0x7f.1'],
  ['an IPv4 address with a dot at the end', '127.0.0.1.'],
  ['an IPv4 address in full-width digits', '１２７.０.０.１'],
  ['an IPv4 address in circled digits', '①②⑦.⓪.⓪.①'],
  ['an IPv4 address with U+3002', '127。0。0。1'],
  ['an IPv4 address in full-width hexadecimal', '０ｘ７ｆ.１'],
  ['numbers too large for an IPv4 address', '999.999.999.999'],
  ['a last label of digits', 'example.123'],
  ['a last label that is an empty hexadecimal number', 'example.0x'],
  ['an IPv6 address', '::1'],
  ['an IPv6 address in brackets', '[IPv6:::1]'],
  ['a percent-encoded dot', 'example%2ecom'],
  ['a percent-encoded dot in Unicode', 'bücher%2eexample'],
  ['a percent sign of full width', 'bücher％2eexample'],
  ['percent-encoded UTF-8', 'b%C3%BCcher.example'],
  ['a soft hyphen', 'exa\u00ADmple.com'],
  ['a zero-width space', 'exa\u200Bmple.com'],
  ['a zero-width joiner', 'exa\u200Dmple.com'],
  ['a joiner that IDNA allows', 'क्\u200Dष.example'],
  ['a right-to-left override', 'exa\u202Emple.com'],
  ['a variation selector', 'example\uFE0F.com'],
  ['letters of both directions in one label', 'אa.example'],
  ['a mark at the beginning of a label', '\u0301a.example'],
  ['an ellipsis', 'a…b.example'],
  ['an account-of sign, which holds a slash', 'a℀b.example'],
  ...Array.from('!"#$&\'()*+,/:;<=>?@[\\]^`{|}~ ').flatMap((character): [string, string][] => [
    [`${character} in ASCII`, `exa${character}mple.com`],
    [`${character} in Unicode`, `bü${character}cher.example`],
  ]),
  ...Array.from('！＃／：？＠［＼］').map((wide): [string, string] => [wide, `bü${wide}cher.example`]),
  ['a no-break space', 'exa\u00A0mple.com'],
  ['a C1 control', 'exa\u0085mple.com'],
  ['a lone surrogate', 'exa\uD800mple.com'],
  ['a port', 'example.com:25'],
  ['a path in Unicode', 'bücher.example/x'],
];

describe('domains', () => {
  for (const [title, text, domain] of ACCEPTED) {
    it(`accepts ${title}`, () => {
      assert.equal(parseDomain(text), domain);
      const mailbox = parseMailbox(`a@${text}`);
      assert.deepEqual(mailbox, { name: null, local: 'a', domain, address: `a@${domain}` });
    });
  }
  for (const [title, text] of REFUSED) {
    it(`refuses ${title}`, () => {
      assert.equal(parseDomain(text), undefined);
      assert.equal(typeof parseMailbox(`a@${text}`), 'string');
      assert.equal(typeof parseMailbox(`Ada <a@${text}>`), 'string');
    });
  }

  it('does not convert a text that is far too long to be one', () => {
    // Converting it takes more than a second.
    const text = 'ﷺ'.repeat(5_000_000);
    const began = process.cpuUsage();
    assert.equal(parseDomain(text), undefined);
    assert.ok(process.cpuUsage(began).user < 500_000);
  });

  it('makes a name of every code point or refuses it', () => {
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
