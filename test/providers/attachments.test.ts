import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test, type TestContext } from 'node:test';
import PostalMime from 'postal-mime';
import type { OutgoingEmail, OutgoingFile } from '../../src/domain/email/outgoing.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { outgoing } from './outgoing.ts';
import { recordingServer } from './servers.ts';
import { at, CALL, simulator } from './simulator.ts';
import { smtpScript } from './smtp-script.ts';

const MB = 1_048_576;

function file(fields: Partial<OutgoingFile> = {}): OutgoingFile {
  return { filename: 'a.txt', contentType: 'text/plain', contentId: null, content: Buffer.from('hello'), ...fields };
}

function withFiles(files: readonly OutgoingFile[], fields: Parameters<typeof outgoing>[0] = {}): OutgoingEmail {
  return { ...outgoing(fields), files };
}

/** All bytes, and names of every kind. */
const FILES: readonly OutgoingFile[] = [
  file({ content: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)) }),
  file({ filename: 'Übersicht "1"; ünd so.pdf', contentType: 'application/pdf', content: randomBytes(100_000) }),
  file({ filename: `${'長'.repeat(251)}.txt`, content: Buffer.from('長い名前') }),
  file({
    filename: "it's 100% 👩‍👧.csv",
    contentType: 'text/csv; charset=utf-8',
    content: Buffer.from('a;b\r\n.\r\n..\r\n'),
  }),
  file({ filename: 'empty.dat', contentType: 'application/octet-stream', content: Buffer.alloc(0) }),
  file({ filename: 'logo.png', contentType: 'image/png', contentId: 'logo@example.com', content: randomBytes(1_000) }),
];

describe('files by Postmark', () => {
  const bytesOf = async (t: TestContext, email: OutgoingEmail) => {
    const { url, requests } = await recordingServer(t, { body: { ErrorCode: 0, MessageID: 'x' } });
    await at(url).send([email], CALL);
    return requests[0]?.body ?? Buffer.alloc(0);
  };

  test('have the fields of its API', async (t) => {
    const body = JSON.parse(String(await bytesOf(t, withFiles(FILES)))) as { Attachments: unknown[] };
    assert.deepEqual(
      body.Attachments,
      FILES.map(({ filename, contentType, contentId, content }) => ({
        Name: filename,
        Content: content.toString('base64'),
        ContentID: contentId === null ? null : `cid:${contentId}`,
        ContentType: contentType,
      })),
    );
    assert.ok(!('Attachments' in (JSON.parse(String(await bytesOf(t, outgoing()))) as object)));
  });

  test('count toward its limit of 10 MB, to the byte', async (t) => {
    const provider = at('http://127.0.0.1:1');
    const small = withFiles([file({ content: Buffer.alloc(0) })]);
    const available = 10 * MB - (await bytesOf(t, small)).length;
    const content = Buffer.alloc(Math.floor(available / 4) * 3);
    const fits = { ...small, files: [file({ content })] };
    assert.equal(provider.refusal(fits), undefined);
    const over = { ...small, files: [file({ content: Buffer.alloc(content.length + 4) })] };
    assert.match(provider.refusal(over) ?? '', /^Postmark accepts at most 10485760 bytes, not \d+\.$/);
    const size = Number(/not (\d+)/.exec(provider.refusal(over) ?? '')?.[1]);
    assert.equal(size, (await bytesOf(t, over)).length);
  });
});

describe('files by SMTP', () => {
  test('arrive as they were, with their names, types and ids', async (t) => {
    const server = await smtpScript(t, {});
    const email = withFiles(FILES, { html: '<img src="cid:logo@example.com">' });
    const [outcome] = await smtp(server.url).send([email], CALL);
    assert.equal(outcome?.kind, 'sent');
    const raw = (server.messages[0] as string).replace(/\r\n\.\./g, '\r\n.');
    const { attachments, html } = await PostalMime.parse(Buffer.from(raw, 'latin1'));
    assert.match(html ?? '', /cid:logo@example\.com/);
    const found = new Map(attachments.map((each) => [each.filename, each]));
    assert.equal(attachments.length, FILES.length);
    for (const { filename, contentType, contentId, content } of FILES) {
      const each = found.get(filename);
      assert.ok(each, filename);
      assert.ok(Buffer.from(each.content as ArrayBuffer).equals(content), filename);
      assert.equal(each.mimeType, contentType.split(';')[0]);
      assert.equal(each.contentId ?? null, contentId === null ? null : `<${contentId}>`);
      assert.equal(each.disposition, contentId === null ? 'attachment' : 'inline');
    }
    for (const line of raw.split('\r\n')) assert.ok(line.length <= 998, line);
  });

  test('are sent up to 30 MB', async (t) => {
    const there = await simulator(t);
    const content = randomBytes(30 * MB);
    const [outcome] = await smtp(there.smtpUrl).send([withFiles([file({ content })])], CALL);
    assert.equal(outcome?.kind, 'sent', JSON.stringify(outcome));
    const [message] = await there.inbox();
    assert.equal(message?.attachments[0]?.size, content.length);
  });
});
