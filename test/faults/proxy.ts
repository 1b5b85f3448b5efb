import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** `request` comes from the side that connects. */
export type Direction = 'request' | 'response';
export type Watcher = (direction: Direction, data: Buffer) => void;

/** A TCP proxy between two processes that can fail as networks do. */
export interface TcpProxy {
  readonly port: number;
  /** Breaks all connections; new ones pass. */
  readonly cut: () => void;
  /** Breaks all connections and each new one until `open`. */
  readonly shut: () => void;
  readonly open: () => void;
  /** Holds all data of this direction back until `release`. */
  readonly hold: (direction: Direction) => void;
  readonly release: () => void;
  /**
   * Leaves all connections open and dead for `ms`: nothing passes on them, and neither side learns that the other one has
   * closed, as when a host loses its power. New connections pass.
   */
  readonly strand: (ms: number) => void;
  /** Gives a connection no more answers once its request matches, until it ends. @returns a function that lets later ones pass */
  readonly mute: (matches: (data: Buffer) => boolean) => () => void;
  /** Calls `watcher` with all data before it is forwarded; it may hold it back. @returns a function that ends this */
  readonly watch: (watcher: Watcher) => () => void;
  readonly close: () => Promise<void>;
}

interface Lane {
  readonly direction: Direction;
  readonly from: Socket;
  readonly to: Socket;
  readonly kept: Buffer[];
  isMuted: boolean;
}

/** Opens a proxy on loopback to a port. */
export async function startProxy(target: number, host = '127.0.0.1'): Promise<TcpProxy> {
  const lanes = new Set<Lane>();
  const stranded = new Set<Lane>();
  const watchers = new Set<Watcher>();
  const held = new Set<Direction>();
  const mutes = new Set<(data: Buffer) => boolean>();
  let isShut = false;

  const server = createServer({ noDelay: true }, (near) => {
    near.on('error', () => undefined);
    if (isShut) {
      near.destroy();
      return;
    }
    const far = connect({ port: target, host, noDelay: true });
    far.on('error', () => undefined);
    const answers: Lane = { direction: 'response', from: far, to: near, kept: [], isMuted: false };
    proxyTo({ direction: 'request', from: near, to: far, kept: [], isMuted: false }, answers);
    proxyTo(answers);
  });

  function proxyTo(lane: Lane, answers = lane): void {
    const { direction, from, to, kept } = lane;
    lanes.add(lane);
    from.on('data', (data: Buffer) => {
      for (const watcher of watchers) watcher(direction, data);
      if (direction === 'request' && [...mutes].some((matches) => matches(data))) answers.isMuted = true;
      if (stranded.has(lane) || lane.isMuted) return;
      if (held.has(direction)) kept.push(data);
      else to.write(data);
    });
    from.once('close', () => {
      if (stranded.has(lane)) return;
      lanes.delete(lane);
      // Data that was sent before the end arrives; held data is lost with the connection.
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
  // It does not keep a process alive.
  server.listen(0, '127.0.0.1').unref();
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
    mute(matches) {
      mutes.add(matches);
      return () => mutes.delete(matches);
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
