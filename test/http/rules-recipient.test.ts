import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { pino } from 'pino';
import { makeLargeEmails } from '../../src/delivery/email/large-emails.ts';
import type { EmailProvider } from '../../src/providers/email-provider.ts';
import { postmark } from '../../src/providers/postmark/postmark.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { harness } from '../delivery/harness.ts';
import { httpServer } from '../providers/servers.ts';
import { smtpScript } from '../providers/smtp-script.ts';
import { site } from '../public-fetch/web.ts';
import { useService } from './service.ts';

/** No bytes that a provider receives contain what interface.md hides from recipients. */
const service = await useService();
const ours = await service.organization();
const largeEmails = makeLargeEmails(service.pool, service.files, pino({ level: 'silent' }));

/** A provider, and all bytes that it received. */
type Wire = (t: TestContext) => Promise<{ provider: EmailProvider; bytes: () => string }>;

const WIRES: Readonly<Record<string, Wire>> = {
  Postmark: async (t) => {
    let text = '';
    const baseUrl = await httpServer(t, (request, response) => {
      text += JSON.stringify(request.headers);
      request.on('data', (chunk: Buffer) => (text += chunk.toString()));
      request.once('end', () => response.end('{"ErrorCode":0,"MessageID":"x"}'));
    });
    const streams = { messageStream: 'outbound', broadcastStream: 'broadcast' };
    return { provider: postmark({ serverToken: 'token', baseUrl, ...streams }), bytes: () => text };
  },
  SMTP: async (t) => {
    const server = await smtpScript(t, {});
    return { provider: smtp(server.url), bytes: () => [...server.commands, ...server.messages].join('\n') };
  },
};

/** Sends an email by the API and delivers it as a worker does. @returns the bytes that the provider received */
async function send(t: TestContext, wire: Wire, fields: Record<string, unknown>): Promise<string> {
  const { provider, bytes } = await wire(t);
  const id = await ours.sent({ subject: 'Seen by all', ...fields });
  const settings = { contents: service.deps.contents, providers: [provider], largeEmails };
  const result = await harness(service.pool, ours.id, [], settings).deliverOne({ id, version: 0 });
  assert.deepEqual(result, { id, state: 'ended', status: 'sent', provider: provider.name });
  assert.match(bytes(), /Seen by all/);
  return bytes();
}

for (const [name, wire] of Object.entries(WIRES)) {
  it(`a tag is not sent by ${name}`, async (t) => {
    const sent = await send(t, wire, { tags: [{ name: 'secret-name', value: 'secret-value' }] });
    assert.doesNotMatch(sent, /secret-/);
  });

  it(`the file of a path is sent by ${name}, and its URL is not`, async (t) => {
    const web = await site(t, (_, response) => response.end('from the web'));
    const path = `${web.url}/secret-place`;
    const sent = await send(t, wire, { attachments: [{ filename: 'a.txt', path }] });
    assert.ok(sent.includes(Buffer.from('from the web').toString('base64')), sent);
    assert.ok(!sent.includes('secret-place'), sent);
  });
}
