import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { postmark } from '../../src/providers/postmark/postmark.ts';
import type { InboxMessage } from '../../dev/simulator/inbox/message.ts';
import { setBehaviour } from '../../dev/simulator/set-behaviour.ts';
import { type SimulatorOptions, startSimulator } from '../../dev/simulator/simulator.ts';

export const TOKEN = 'server-token';
/** The name of a call. */
export const CALL = 'call_00000000000000000000000001';

/** The Postmark provider for a base URL. */
export function at(baseUrl: string, timeoutSeconds = 600, serverToken = TOKEN) {
  const streams = { messageStream: 'outbound', broadcastStream: 'broadcast' };
  // On a busy machine a call may take longer than it goes on with further requests.
  return postmark({ serverToken, baseUrl, ...streams, timeoutSeconds, now: () => 0 });
}

/** Simulated providers on free ports with short delays; they end with the test. */
export async function simulator(t: TestContext, options: Partial<SimulatorOptions> = {}) {
  const { postmarkUrl, smtpUrl, chatUrl, inboxUrl, ...started } = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    smtpPort: 0,
    folder: null,
    serverToken: TOKEN,
    deliveryCallback: null,
    log: pino({ level: 'silent' }),
    ...options,
    times: { slow: 400, report: 20, callbackRetries: [20, 40], ...options.times },
  });
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= started.close());
  t.after(close);
  return {
    postmarkUrl,
    smtpUrl,
    chatUrl,
    inboxUrl,
    close,
    /** What arrived, latest first: for one address, or all of it. */
    inbox: async <Message = InboxMessage>(to?: string): Promise<Message[]> => {
      const answer = await fetch(`${inboxUrl}/messages${to === undefined ? '' : `?to=${encodeURIComponent(to)}`}`);
      return (await answer.json()) as Message[];
    },
    /** Sets its behaviour; switches that are not named are off. */
    behave: (behaviour: object) => setBehaviour(postmarkUrl, behaviour),
  };
}
