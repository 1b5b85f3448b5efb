import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useService } from '../http/service.ts';
import { signedIn, textOf } from './visitor.ts';

const service = await useService();
const ours = await service.organization();
const member = await signedIn(service, ours.id, 'member');

describe('the headers of a marketing email', () => {
  const fields = {
    marketing: true,
    text: '{{{unsubscribe_url}}}',
    headers: { 'X-Order': '1', 'List-Unsubscribe': '<https://acme.example/stop>' },
  };
  /** The shown lines, and the text of the page. */
  const shown = async (id: string) => {
    const { html } = await member.get(`/dashboard/emails/${id}?show=headers`);
    const headers = /<pre class="preview"[^>]*>([^<]*)/.exec(html)?.[1] ?? assert.fail(textOf(html));
    return { lines: headers.replaceAll('&lt;', '<').trim().split('\n'), text: textOf(html) };
  };
  const unsubscribe = [
    'List-Unsubscribe: <{{{unsubscribe_url}}}>',
    'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
  ];

  it('are those of the copy for its first recipient, without a working unsubscribe link', async () => {
    const id = await ours.sent({ ...fields, to: ['a@example.net', 'b@example.net'], cc: ['c@example.net'] });
    const { lines, text } = await shown(id);
    const [, to, , messageId, ...others] = lines;
    assert.equal(to, 'To: a@example.net');
    assert.match(String(messageId), new RegExp(`^Message-ID: <${id}\\.0@`));
    assert.deepEqual(others, ['X-Order: 1', ...unsubscribe]);
    assert.match(
      text,
      /Of the copy for the first recipient\. Each copy has its own To, Message-ID and unsubscribe link\./,
    );
  });

  it('are its own if it has one recipient', async () => {
    const id = await ours.sent({ ...fields, to: ['a@example.net'] });
    const { lines, text } = await shown(id);
    assert.ok(
      lines.some((line) => line.startsWith(`Message-ID: <${id}@`)),
      lines.join('\n'),
    );
    assert.deepEqual(lines.slice(-2), unsubscribe);
    assert.match(text, /As Sendwright sets them\./);
  });
});
