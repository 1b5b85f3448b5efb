import type { TestContext } from 'node:test';
import { createTransport } from 'nodemailer';
import { type Message, ServerClient } from 'postmark';
import type { SimulatorOptions } from '../../../dev/simulator/simulator.ts';
import { simulator, TOKEN } from '../../providers/simulator.ts';

/** Simulated providers with a client for each protocol. They end with the test. */
export async function start(t: TestContext, options: Partial<SimulatorOptions> = {}) {
  const started = await simulator(t, options);
  const { postmarkUrl, smtpUrl } = started;
  const postmark = new ServerClient(TOKEN, { useHttps: false, requestHost: new URL(postmarkUrl).host, timeout: 30 });
  const mailer = createTransport(smtpUrl);
  t.after(() => mailer.close());
  const headers = { 'content-type': 'application/json', 'x-postmark-server-token': TOKEN };
  return {
    ...started,
    postmark,
    mailer,
    post: (path: string, body: object) =>
      fetch(postmarkUrl + path, { method: 'POST', headers, body: JSON.stringify(body) }),
  };
}

let count = 0;

/** A smallest message for Postmark, to an address that no other test uses. */
export function mail(fields: object = {}): Message & { To: string } {
  return {
    From: 'sender@example.com',
    To: `person${++count}@example.net`,
    Subject: 'Hello',
    TextBody: 'Hi.',
    ...fields,
  };
}
