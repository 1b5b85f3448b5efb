import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';

/** A callback as it came. */
export interface Hit {
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Answers each callback with the next of these statuses, the last one for ever; 0 breaks the connection. */
export async function receiver(t: TestContext, ...statuses: number[]) {
  const hits: Hit[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      hits.push({ url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) });
      const status = statuses[Math.min(hits.length, statuses.length) - 1] ?? 200;
      if (status === 0) request.socket.destroy();
      else response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { hits, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Waits until so many callbacks have come, and then a moment for one too many. */
export async function settled(hits: readonly Hit[], count: number): Promise<void> {
  await eventually(`${count} callbacks came`, () => hits.length >= count);
  await sleep(100);
}
