import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { pino } from 'pino';
import { deliver } from '../../src/delivery/email/deliver.ts';
import { makeLargeEmails } from '../../src/delivery/email/large-emails.ts';
import { makeProviderPauses } from '../../src/delivery/pauses.ts';
import { makeAttemptRecorder } from '../../src/delivery/recorder.ts';
import type { EmailProvider } from '../../src/providers/email-provider.ts';
import { postmark } from '../../src/providers/postmark/postmark.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { httpServer } from '../providers/servers.ts';
import { smtpScript } from '../providers/smtp-script.ts';
import { site } from '../public-fetch/web.ts';
import { useService } from './service.ts';

/** What interface.md keeps from recipients, in the very bytes that leave for a provider. */
const service = await useService();
const ours = await service.organization();

/** A provider, and all that it was given. */
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

/** Accepts an email by the API, hands it over as a worker does, and gives what left. */
async function whatLeaves(t: TestContext, wire: Wire, fields: Record<string, unknown>): Promise<string> {
  const { provider, bytes } = await wire(t);
  const id = await ours.sent({ subject: 'Seen by all', ...fields });
  const log = pino({ level: 'silent' });
  const [result] = await deliver(
    {
      pool: service.pool,
      contents: service.deps.contents,
      providers: [provider],
      maxIntervalMs: 1_000,
      ambiguousSend: 'retry',
      ambiguousSendMaxRepeats: 1,
      confirmNotFoundAfterMs: 60_000,
      largeEmails: makeLargeEmails(service.files, log),
      pauses: makeProviderPauses(service.pool, log),
      accountRetryForMs: 72 * 3_600_000,
      recorder: makeAttemptRecorder(service.pool, log),
      stopping: new AbortController().signal,
      sendingDomains: async () => () => ({ signer: null }),
      unsubscribeUrl: () => 'https://mail.example/unsubscribe',
      log,
    },
    [{ id, version: 0 }],
  );
  assert.deepEqual(result, { id, state: 'ended', status: 'sent', provider: provider.name });
  assert.match(bytes(), /Seen by all/);
  return bytes();
}

for (const [name, wire] of Object.entries(WIRES)) {
  describe(`what leaves by ${name}`, () => {
    it('holds no tag', async (t) => {
      const left = await whatLeaves(t, wire, { tags: [{ name: 'secret-name', value: 'secret-value' }] });
      assert.doesNotMatch(left, /secret-/);
    });

    it('holds the file of a path and not its URL', async (t) => {
      const web = await site(t, (_, response) => response.end('from the web'));
      const path = `${web.url}/secret-place`;
      const left = await whatLeaves(t, wire, { attachments: [{ filename: 'a.txt', path }] });
      assert.ok(left.includes(Buffer.from('from the web').toString('base64')), left);
      assert.ok(!left.includes('secret-place'), left);
    });
  });
}
