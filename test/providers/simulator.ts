import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { postmark } from '../../src/providers/postmark/postmark.ts';
import type { InboxMessage } from '../../dev/simulator/inbox/message.ts';
import { startSimulator } from '../../dev/simulator/simulator.ts';

export const TOKEN = 'server-token';
/** The name of a call. */
export const CALL = 'call_00000000000000000000000001';

/** Postmark's adapter for whatever answers there. @param timeout seconds */
export function at(baseUrl: string, timeout = 600, serverToken = TOKEN) {
  const streams = { messageStream: 'outbound', broadcastStream: 'broadcast' };
  // On a busy machine a call may take longer than it goes on with further requests.
  return postmark({ serverToken, baseUrl, ...streams, timeout, now: () => 0 });
}

/** Simulated providers on free ports that end with the test. */
export async function simulator(t: TestContext) {
  const started = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    smtpPort: 0,
    folder: null,
    serverToken: TOKEN,
    deliveryCallback: null,
    log: pino({ level: 'silent' }),
    times: { slow: 400, report: 20, callbackRetries: [] },
  });
  t.after(() => started.close());
  const { postmarkUrl, smtpUrl, inboxUrl } = started;
  return {
    postmarkUrl,
    smtpUrl,
    /** What arrived, newest first. */
    inbox: async () => (await (await fetch(`${inboxUrl}/messages`)).json()) as InboxMessage[],
    /** Switches its behaviour; what is not named becomes normal. */
    behave: async (behaviour: object): Promise<void> => {
      const { ok } = await fetch(`${postmarkUrl}/simulator/behaviour`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(behaviour),
      });
      if (!ok) throw new Error('the simulator does not know this switch');
    },
  };
}
