import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What stands in front of several processes, as the proxy does in production. */
export interface Balancer {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** Milliseconds until the next one is tried, when none could be reached. */
const PAUSE = 100;
/** Milliseconds for which a connection waits for one that can be reached. */
const PATIENCE = 30_000;

/** Hands connections on to ports of this machine in turn; those that refuse are passed over. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let turn = 0;

  const server = createServer((near) => {
    sockets.add(near);
    near.once('close', () => sockets.delete(near));
    near.on('error', () => near.destroy());
    near.pause();
    reach(near, Date.now() + PATIENCE);
  });

  function reach(near: Socket, until: number): void {
    if (near.destroyed) return;
    const far = connect({ port: ports[turn++ % ports.length] ?? 0, host: '127.0.0.1' });
    far.once('error', () => {
      if (Date.now() < until) setTimeout(reach, PAUSE, near, until).unref();
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
