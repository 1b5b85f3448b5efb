import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { personalize } from '../../src/domain/email/marketing.ts';
import { outgoing } from '../providers/outgoing.ts';

const LINK = 'https://mail.example.com/unsubscribe/em_1.0.abc';

describe('a marketing email', () => {
  for (const placeholder of [
    '%7B%7B%7Bunsubscribe_url%7D%7D%7D',
    '%7b%7b%7bunsubscribe_url%7d%7d%7d',
    '%7B%7B%7B%20unsubscribe_url%20%7D%7D%7D',
    '{{{%20unsubscribe_url }}}',
    '{{%7Bunsubscribe%5Furl}}%7d',
  ]) {
    it(`${placeholder}, which an editor made of the placeholder, becomes the link`, () => {
      const link = 'https://mail.example/unsubscribe/x';
      const { html } = personalize(outgoing({ html: `<a href="${placeholder}">off</a>` }), link);
      assert.equal(html, `<a href="${link}">off</a>`);
    });
  }

  it('`{{{unsubscribe_url}}}` becomes the link, everywhere in html and text', () => {
    const { html, text } = personalize(
      outgoing({
        html: '<a href="{{{unsubscribe_url}}}">off</a> {{{ unsubscribe_url }}}{{{unsubscribe_url}}}',
        text: 'Off: {{{unsubscribe_url}}}, {{{\tunsubscribe_url}}}',
      }),
      LINK,
    );
    assert.equal(html, `<a href="${LINK}">off</a> ${LINK}${LINK}`);
    assert.equal(text, `Off: ${LINK}, ${LINK}`);
  });

  it('the link is escaped in html and raw in text', () => {
    const link = `https://mail.example.com/a?b=1&c="<'>`;
    const { html, text } = personalize(
      outgoing({ html: '{{{unsubscribe_url}}}', text: '{{{unsubscribe_url}}}' }),
      link,
    );
    assert.equal(html, 'https://mail.example.com/a?b=1&amp;c=&quot;&lt;&#39;&gt;');
    assert.equal(text, link);
  });

  it('what means something in a replacement is a link like any other', () => {
    const link = "https://mail.example.com/$&$1$$$`$'";
    const { text } = personalize(outgoing({ text: 'a {{{unsubscribe_url}}} b' }), link);
    assert.equal(text, `a ${link} b`);
  });

  it('has no other placeholder, and a body without one is unchanged', () => {
    const body =
      '{{unsubscribe_url}} {{{unsubscribe}}} {{{UNSUBSCRIBE_URL}}} {{{unsubscribe_url}} {{{\nunsubscribe_url}}} $&';
    const { html, text } = personalize(outgoing({ html: body, text: body }), LINK);
    assert.deepEqual([html, text], [body, body]);
  });

  it('has both headers of a one-click link (RFC 8058)', () => {
    const { headers } = personalize(outgoing({ headers: { 'X-A': '1' } }), LINK);
    assert.deepEqual(headers, [
      ['X-A', '1'],
      ['List-Unsubscribe', `<${LINK}>`],
      ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    ]);
  });

  it('Custom headers 5: the hosted headers take precedence over a custom List-Unsubscribe, however it is written', () => {
    for (const name of ['List-Unsubscribe', 'list-unsubscribe', 'LIST-UNSUBSCRIBE-POST', 'List-unsubscribe-Post']) {
      const { headers } = personalize(outgoing({ headers: { 'x-a': '1', [name]: '<mailto:me@example.net>' } }), LINK);
      assert.deepEqual(
        headers.map(([each]) => each),
        ['x-a', 'List-Unsubscribe', 'List-Unsubscribe-Post'],
      );
    }
  });

  it('of a million characters is processed in linear time, whatever they are', () => {
    const open = '{'.repeat(500_000);
    const text = `${open}${' '.repeat(499_000)}unsubscribe_url}}}`;
    assert.equal(personalize(outgoing({ text }), LINK).text, `${open.slice(3)}${LINK}`);
  });
});
