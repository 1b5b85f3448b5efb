import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { personalize } from '../../src/domain/email/marketing.ts';
import { makeUnsubscribeTokens, unsubscribeUrl } from '../../src/domain/email/unsubscribe-token.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { outgoing } from './outgoing.ts';
import { at, CALL, simulator } from './simulator.ts';
import { smtpScript } from './smtp-script.ts';

/** A link as long as they are, under an address that is longer than most. */
const token = makeUnsubscribeTokens('a secret key for links').make({
  orgId: newId('org'),
  emailId: newId('em'),
  position: 149,
});
const link = unsubscribeUrl(`https://${'mail.'.repeat(20)}example.com/a-path?tenant=1&x=`, token);
const marketing = () =>
  personalize(
    outgoing({
      html: '<a href="{{{unsubscribe_url}}}">Unsubscribe</a>',
      text: 'Unsubscribe: {{{unsubscribe_url}}}',
      headers: { 'list-unsubscribe': '<mailto:old@example.net>', 'X-A': '1' },
    }),
    link,
  );

describe('3.7: a marketing email has its link and both headers', { concurrency: true }, () => {
  test('by Postmark', async (t) => {
    const { postmarkUrl, inbox } = await simulator(t);
    await at(postmarkUrl).send([marketing()], CALL);
    const [message = assert.fail()] = await inbox();
    assert.deepEqual(Object.entries(message.headers).slice(1), [
      ['X-A', '1'],
      ['List-Unsubscribe', `<${link}>`],
      ['List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'],
    ]);
    assert.equal(message.html?.trim(), `<a href="${link.replace('&', '&amp;')}" data-pm-no-track>Unsubscribe</a>`);
    assert.equal(message.text?.trim(), `Unsubscribe: ${link}`);
  });

  test('by SMTP, in lines that no server breaks', async (t) => {
    const server = await smtpScript(t, {});
    await smtp(server.url).send([marketing()], CALL);
    const [head = ''] = (server.messages[0] as string).split('\r\n\r\n', 1);
    assert.ok(head.split('\r\n').every((line) => line.length <= 998));
    assert.match(
      head.replace(/\r\n(?=[ \t])/g, ''),
      new RegExp(`^List-Unsubscribe: +<${link.replace(/[?.]/g, '\\$&')}>$`, 'm'),
    );
    assert.match(head, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click$/m);
    assert.doesNotMatch(head, /old@example\.net/);
  });
});
