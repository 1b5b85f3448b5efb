import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { markLinks, replaceLinks } from '../../src/domain/email/html-links.ts';
import { trackableUrl } from '../../src/domain/email/tracked-links.ts';
import { escapeHtml } from '../../src/lib/html.ts';

const IMAGE = '<img src="https://t.example/o" alt="">';
const tracked = (href: string): string | undefined =>
  trackableUrl(href) === undefined ? undefined : 'https://t.example/c';

describe('replacing the links of HTML', () => {
  const same: readonly (readonly [string, string])[] = [
    ['a mailto link', '<a href="mailto:a@example.net?subject=https://x.example">'],
    ['a telephone number', '<a href="tel:+12025550142">'],
    ['a part of the same text', '<a href="#top">'],
    ['an attached file', '<a href="cid:logo@acme">'],
    ['a relative link', '<a href="/account">'],
    ['a link without a scheme', '<a href="//x.example/">'],
    ['an empty link', '<a href=""><a href><a>'],
    ['a placeholder', '<a href="{{{unsubscribe_url}}}">'],
    ['no URL', '<a href="https://">'],
    ['an image', '<img src="https://x.example/a.png">'],
    ['another element', '<link href="https://x.example/a.css"><abbr href="https://x.example">'],
    ['another attribute', '<a data-href="https://x.example" title=\'href="https://x.example"\'>'],
    ['a comment', '<!-- <a href="https://x.example"> -->'],
    ['a conditional comment', '<!--[if mso]><a href="https://x.example"><![endif]-->'],
    ['a style', '<style>a[href="https://x.example"] { color: red }</style>'],
    ['a script', '<script>"<a href=\'https://x.example\'>"</script>'],
    ['a text area', '<textarea><a href="https://x.example"></textarea>'],
    ['text', 'https://x.example &lt;a href="https://x.example"&gt;'],
    ['a tag that does not end', '<a href="https://x.example"'],
    ['an attribute that does not end', '<p>Hi</p><a href="https://x.example>'],
  ];
  for (const [name, html] of same) {
    it(`leaves ${name} as it is`, () => assert.equal(replaceLinks(html, tracked), html));
  }

  const changed: readonly (readonly [string, string])[] = [
    ['<a href="https://x.example/?a=1&amp;b=2">', '<a href="https://t.example/c">'],
    ["<A CLASS=b HREF='HTTP://x.example' >", "<A CLASS=b HREF='https://t.example/c' >"],
    ['<a href=https://x.example/>', '<a href=https://t.example/c>'],
    ['<a\n\thref  =\n"https://x.example"id=b>', '<a\n\thref  =\n"https://t.example/c"id=b>'],
    ['<area href="https://x.example" shape=rect>', '<area href="https://t.example/c" shape=rect>'],
    ['<a href="&#104;ttps://x.example">', '<a href="https://t.example/c">'],
    ['<a href=" https://x.example ">', '<a href="https://t.example/c">'],
    [
      '<!--[if !mso]><!--><a href="https://x.example"><!--<![endif]-->',
      '<!--[if !mso]><!--><a href="https://t.example/c"><!--<![endif]-->',
    ],
    [
      '<a href="https://x.example" href="https://y.example">',
      '<a href="https://t.example/c" href="https://t.example/c">',
    ],
  ];
  for (const [html, expected] of changed) {
    it(`replaces only the target in ${JSON.stringify(html)}`, () =>
      assert.equal(replaceLinks(html, tracked), expected));
  }

  it('passes the link without entities, as a browser requests it', () => {
    const hrefs: string[] = [];
    const html = '<a href="https://x.example/?a=1&amp;copy=2&copy=3&#38;d=&quot;"><a href=https://x.example/ü>';
    replaceLinks(html, (href) => void hrefs.push(href));
    assert.deepEqual(hrefs, ['https://x.example/?a=1&copy=2&copy=3&d="', 'https://x.example/ü']);
    assert.deepEqual(hrefs.map(trackableUrl), [hrefs[0], 'https://x.example/%C3%BC']);
  });

  it('escapes the new target', () => {
    assert.equal(
      replaceLinks('<a href="https://x">', () => 'https://t/?a&"b'),
      '<a href="https://t/?a&amp;&quot;b">',
    );
  });

  it('inserts HTML at the end of the body, wherever the end tag is', () => {
    for (const [html, expected] of [
      ['<html><body><p>Hi</p></body></html>', `<html><body><p>Hi</p>${IMAGE}</body></html>`],
      ['<p>Hi</p></BODY >', `<p>Hi</p>${IMAGE}</BODY >`],
      ['<html><p>Hi</p></html>\n', `<html><p>Hi</p>${IMAGE}</html>\n`],
      ['<p>Hi</p>', `<p>Hi</p>${IMAGE}`],
      ['<body><!-- </body> --><p>Hi</p></body>', `<body><!-- </body> --><p>Hi</p>${IMAGE}</body>`],
      ['<body>a</body><body>b</body>', `<body>a</body><body>b${IMAGE}</body>`],
      ['</body><a href="https://x.example">', `${IMAGE}</body><a href="https://t.example/c">`],
    ] as const) {
      assert.equal(replaceLinks(html, tracked, IMAGE), expected);
    }
  });

  it('replaces any number of targets in one tag', () => {
    const html = (target: string) => `<a${` href=${target}`.repeat(150_000)}>`;
    assert.equal(
      replaceLinks(html('x'), () => 'y'),
      html('y'),
    );
  });

  it('marks the selected links only', () => {
    assert.equal(
      markLinks('<a href="https://x" id=a><a href=https://y><a href=https://x>', (href) => href === 'https://x', 'n'),
      '<a href="https://x" n id=a><a href=https://y><a href=https://x n>',
    );
  });
});

/** Text without markup. */
const text = fc.string({ unit: 'grapheme', maxLength: 20 }).map(escapeHtml);
const url = fc.webUrl({ withQueryParameters: true, withFragments: true });
const other = fc.constantFrom('mailto:a@example.net', 'tel:+1', '#a', 'cid:x', '/x', '{{{unsubscribe_url}}}', '');
const href = fc.oneof(url, other);

/** One piece of HTML: before, the target of its link as it is written, and after; without a link only `before`. */
type Piece = readonly [before: string, href?: string, after?: string];
const link = fc
  .tuple(
    href,
    fc.constantFrom('"', "'"),
    fc.constantFrom('a', 'A', 'area'),
    fc.constantFrom('', ' class="x"', '\n id=y'),
    text,
  )
  .map(([target, quote, name, more, label]): Piece => [
    `<${name}${more} href=${quote}`,
    target,
    `${quote}${more}>${label}</${name}>`,
  ]);
const rest = fc
  .oneof(
    text,
    text.map((content) => `<!-- ${content.replaceAll('-', '')} <a href="https://x.example"> -->`),
    text.map((content) => `<style>${content}<a href="https://x.example"></style>`),
    text.map((content) => `<p title="${content}">${content}<br/>\r\n`),
    fc.constant('<img src="https://x.example/i.png">'),
  )
  .map((html): Piece => [html]);
const pieces = fc.array(fc.oneof(link, rest), { maxLength: 12 });

describe('the links of any HTML', () => {
  it('are all replaced, resolve to their original targets, and no other character changes', () => {
    fc.assert(
      fc.property(pieces, (parts) => {
        const build = (change: (target: string) => string): string =>
          parts
            .map(([before, target, after = '']) => before + (target === undefined ? '' : change(target)) + after)
            .join('');
        const targets = parts.flatMap(([, target]) => (target === undefined ? [] : target));
        const seen: string[] = [];
        const html = build(escapeHtml);
        const replaced = replaceLinks(html, (target) => {
          const found = trackableUrl(target);
          return found === undefined ? undefined : `https://t.example/c/${seen.push(found) - 1}`;
        });
        const expected = targets.filter((target) => /^https?:/.test(target));
        assert.deepEqual(seen, expected);
        let count = 0;
        const isUrl = (target: string) => /^https?:/.test(target);
        assert.equal(
          replaced,
          build((target) => (isUrl(target) ? `https://t.example/c/${count++}` : escapeHtml(target))),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('leave anything as it is when none is replaced', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('<', '>', '=', '"', "'", '/', '!', '-', '&', ';', 'a', 'href', ' ') }),
        (html) => {
          assert.equal(
            replaceLinks(html, () => undefined),
            html,
          );
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
