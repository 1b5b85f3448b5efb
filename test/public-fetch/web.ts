import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createListener, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import type { HostAddress } from '../../src/public-fetch/resolve.ts';

/** What the fetching side may reach in these tests. The canary listens at 127.0.0.1, which it may not. */
export const REACHABLE = '127.0.0.2';

export interface Site {
  readonly port: number;
  readonly url: string;
  /** Every request that arrived: its target and headers. */
  readonly requests: { url: string; headers: NodeJS.Dict<string | string[]> }[];
  /** Connections that are open. */
  readonly open: Set<Socket>;
}

/** A web server that ends with the test. */
export async function site(t: TestContext, answer: RequestListener): Promise<Site> {
  const requests: Site['requests'] = [];
  const open = new Set<Socket>();
  const server = createServer((request, response) => {
    requests.push({ url: request.url ?? '', headers: request.headers });
    answer(request, response);
  });
  server.on('connection', (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  server.listen(0, REACHABLE);
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://${REACHABLE}:${port}`, requests, open };
}

/** A server that answers every request with exactly these bytes. */
export async function rawSite(t: TestContext, answer: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createListener((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('data', () => answer(socket));
  });
  server.listen(0, REACHABLE);
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://${REACHABLE}:${(server.address() as AddressInfo).port}`;
}

/** A server that accepts connections and never sends a byte. @returns its https URL and its open connections */
export async function silentSite(t: TestContext): Promise<Pick<Site, 'url' | 'open'>> {
  const open = new Set<Socket>();
  const server = createListener((socket) => {
    open.add(socket.on('error', () => undefined).resume());
    socket.on('close', () => open.delete(socket));
  });
  server.listen(0, REACHABLE);
  await once(server, 'listening');
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { url: `https://${REACHABLE}:${(server.address() as AddressInfo).port}`, open };
}

export interface PrivateServer {
  readonly port: number;
  connections: number;
}

/** Starts a server that no caller may reach, on both loopback addresses. @returns how many connections it received */
export async function startPrivateServer(t: TestContext): Promise<PrivateServer> {
  const seen = { port: 0, connections: 0 };
  for (const address of ['127.0.0.1', '::1']) {
    const server = createListener((socket) => {
      seen.connections++;
      socket.destroy();
    });
    server.listen(seen.port, address);
    await once(server, 'listening');
    seen.port = (server.address() as AddressInfo).port;
    t.after(() => server.close());
  }
  return seen;
}

/** A resolver that knows these names, one answer for each time it is asked and the last for ever. */
export function names(known: Record<string, string[][]>) {
  const asked: string[] = [];
  const resolve = async (hostname: string): Promise<HostAddress[]> => {
    const answers = known[hostname];
    if (!answers) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' });
    const time = asked.filter((name) => name === hostname).length;
    asked.push(hostname);
    const addresses = answers[Math.min(time, answers.length - 1)] ?? [];
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  };
  return { asked, resolve };
}
