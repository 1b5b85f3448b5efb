import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP balancer, like the proxy in production. */
export interface Balancer {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** The pause before the next port is tried. */
const PAUSE_MS = 100;
/** How long a connection waits for a reachable port. */
const TIMEOUT_MS = 30_000;

/** Forwards connections to ports of this machine in turn, and skips those that refuse. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let turn = 0;

  const server = createServer((near) => {
    sockets.add(near);
    near.once('close', () => sockets.delete(near));
    near.on('error', () => near.destroy());
    near.pause();
    connectBackend(near, Date.now() + TIMEOUT_MS);
  });

  function connectBackend(near: Socket, until: number): void {
    if (near.destroyed) return;
    const far = connect({ port: ports[turn++ % ports.length] ?? 0, host: '127.0.0.1' });
    far.once('error', () => {
      if (Date.now() < until) setTimeout(connectBackend, PAUSE_MS, near, until).unref();
      else near.destroy();
    });
    far.once('connect', () => {
      far.removeAllListeners('error');
      far.on('error', () => near.destroy());
      far.once('close', () => near.destroy());
      near.once('close', () => far.destroy());
      near.pipe(far);
      far.pipe(near);
    });
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      if (server.listening) await once(server, 'close');
    },
  };
}
