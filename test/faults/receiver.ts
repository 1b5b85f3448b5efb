import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Ledger } from './ledger.ts';

/** A delivery that a customer has taken. */
export interface ReceiverEntry {
  /** Of the event: the same for every try. */
  readonly id: string;
  readonly type: string;
}

/** How the customer's endpoint behaves. */
export type ReceiverMode = 'takes' | 'refuses' | 'breaks off' | 'is slow';

export interface Receiver {
  readonly url: string;
  readonly setMode: (mode: ReceiverMode) => void;
  readonly close: () => Promise<void>;
}

/** Milliseconds that a slow endpoint takes: longer than it is waited for. */
const SLOW = 30_000;

/** A customer's endpoint: what it takes is in its ledger before it says so. */
export async function startReceiver(ledger: Ledger<ReceiverEntry>): Promise<Receiver> {
  let mode: ReceiverMode = 'takes';

  async function take(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    if (mode === 'breaks off') {
      outgoing.destroy();
      return;
    }
    if (mode === 'is slow') {
      setTimeout(() => outgoing.end(), SLOW).unref();
      return;
    }
    if (mode === 'refuses') {
      outgoing.writeHead(503).end();
      return;
    }
    const { id, type } = JSON.parse(Buffer.concat(chunks).toString()) as ReceiverEntry;
    await ledger.write({ id, type });
    outgoing.end();
  }

  const server = createServer((incoming, outgoing) => {
    take(incoming, outgoing).catch(() => outgoing.destroy());
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
