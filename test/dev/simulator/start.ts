import type { TestContext } from 'node:test';
import { createTransport } from 'nodemailer';
import { pino } from 'pino';
import { type Message, ServerClient } from 'postmark';
import type { InboxMessage } from '../../../dev/simulator/inbox/message.ts';
import { type SimulatorOptions, startSimulator } from '../../../dev/simulator/simulator.ts';

export const log = pino({ level: 'silent' });
export const TOKEN = 'server-token';

/** A simulator on free ports with short delays and a client for each protocol. It ends with the test. */
export async function start(t: TestContext, options: Partial<SimulatorOptions> = {}) {
  const simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    smtpPort: 0,
    folder: null,
    serverToken: TOKEN,
    deliveryCallback: null,
    log,
    ...options,
    times: { slow: 400, report: 20, callbackRetries: [20, 40], ...options.times },
  });
  const { postmarkUrl, smtpUrl, inboxUrl } = simulator;
  const postmark = new ServerClient(TOKEN, { useHttps: false, requestHost: new URL(postmarkUrl).host, timeout: 30 });
  const mailer = createTransport(smtpUrl);
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= simulator.close());
  t.after(async () => {
    mailer.close();
    await close();
  });

  const json = async (path: string) => (await fetch(inboxUrl + path)).json() as Promise<InboxMessage[]>;
  return {
    postmarkUrl,
    inboxUrl,
    postmark,
    mailer,
    close,
    /** What the inbox holds, newest first: for one address, or all of it. */
    inbox: (to?: string) => json(to === undefined ? '/messages' : `/messages?to=${encodeURIComponent(to)}`),
    behave: (behaviour: object) =>
      fetch(`${postmarkUrl}/simulator/behaviour`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(behaviour),
      }),
    post: (path: string, body: string, headers: Record<string, string> = {}) =>
      fetch(postmarkUrl + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-postmark-server-token': TOKEN, ...headers },
        body,
      }),
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

/** Asks until the answer is there; the test's own time limit is the end of it. */
export async function until<T>(ask: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
