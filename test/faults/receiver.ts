import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Ledger } from './ledger.ts';

/** A webhook delivery that a customer has accepted. */
export interface ReceiverEntry {
  /** Of the event: the same for every attempt. */
  readonly id: string;
  readonly type: string;
}

/** How the customer's endpoint behaves. */
export type ReceiverMode = 'accepts' | 'refuses' | 'breaks off';

export interface Receiver {
  readonly url: string;
  readonly setMode: (mode: ReceiverMode) => void;
  readonly close: () => Promise<void>;
}

/** A customer's endpoint, which writes deliveries to its ledger before it answers. */
export async function startReceiver(ledger: Ledger<ReceiverEntry>): Promise<Receiver> {
  let mode: ReceiverMode = 'accepts';

  async function receive(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await text(incoming);
    if (mode === 'breaks off') {
      outgoing.destroy();
      return;
    }
    if (mode === 'refuses') {
      outgoing.writeHead(503).end();
      return;
    }
    const { id, type } = JSON.parse(body) as ReceiverEntry;
    await ledger.write({ id, type });
    outgoing.end();
  }

  const server = createServer((incoming, outgoing) => {
    receive(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    setMode: (next) => (mode = next),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
