import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** From who connects, or back to him. */
export type Direction = 'request' | 'response';
export type Watcher = (direction: Direction, data: Buffer) => void;

/** A proxy from one process to another by TCP, on which everything that networks do can happen. */
export interface TcpProxy {
  readonly port: number;
  /** Breaks all connections; new ones pass. */
  readonly cut: () => void;
  /** Breaks all connections, and new ones at once, until `open`. */
  readonly shut: () => void;
  readonly open: () => void;
  /** Lets nothing pass in this direction, and tells nobody, until `release`. */
  readonly hold: (direction: Direction) => void;
  readonly release: () => void;
  /**
   * Leaves all connections open and dead for `ms`: nothing passes on them, and neither side learns that the other one has
   * closed, as when a host loses its power. New connections pass.
   */
  readonly strand: (ms: number) => void;
  /** Sees all that comes before it goes on; may hold it. @returns a function that ends it */
  readonly watch: (watcher: Watcher) => () => void;
  readonly close: () => Promise<void>;
}

interface Lane {
  readonly direction: Direction;
  readonly from: Socket;
  readonly to: Socket;
  readonly kept: Buffer[];
}

/** Opens a proxy on loopback to a port. */
export async function startProxy(target: number): Promise<TcpProxy> {
  const lanes = new Set<Lane>();
  const stranded = new Set<Lane>();
  const watchers = new Set<Watcher>();
  const held = new Set<Direction>();
  let isShut = false;

  const server = createServer({ noDelay: true }, (near) => {
    near.on('error', () => undefined);
    if (isShut) {
      near.destroy();
      return;
    }
    const far = connect({ port: target, host: '127.0.0.1', noDelay: true });
    far.on('error', () => undefined);
    proxyTo({ direction: 'request', from: near, to: far, kept: [] });
    proxyTo({ direction: 'response', from: far, to: near, kept: [] });
  });

  function proxyTo(lane: Lane): void {
    const { direction, from, to, kept } = lane;
    lanes.add(lane);
    from.on('data', (data: Buffer) => {
      for (const watcher of watchers) watcher(direction, data);
      if (stranded.has(lane)) return;
      if (held.has(direction)) kept.push(data);
      else to.write(data);
    });
    from.once('close', () => {
      if (stranded.has(lane)) return;
      lanes.delete(lane);
      // What was sent before the end arrives; what was held has gone with the connection.
      to.end();
      to.destroySoon();
    });
  }

  const bury = (lane: Lane) => {
    stranded.delete(lane);
    lane.from.destroy();
  };
  const cut = () => {
    for (const { from } of lanes) from.destroy();
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    shut() {
      isShut = true;
      cut();
    },
    open: () => (isShut = false),
    hold: (direction) => held.add(direction),
    release() {
      held.clear();
      for (const { kept, to } of lanes) for (const data of kept.splice(0)) to.write(data);
    },
    strand(ms) {
      const dead = [...lanes];
      for (const lane of dead) {
        lanes.delete(lane);
        stranded.add(lane);
        lane.from.pause();
      }
      setTimeout(() => dead.forEach(bury), ms).unref();
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      cut();
      stranded.forEach(bury);
      await closed;
    },
  };
}
