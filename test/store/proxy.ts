import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A proxy to a database whose connections can be broken. */
export interface Proxy {
  /** The database's URL through the proxy. */
  readonly url: string;
  /** Breaks all connections and refuses new ones until `open`. */
  readonly close: () => Promise<void>;
  readonly open: () => Promise<void>;
  /** Breaks all connections and accepts new ones. */
  readonly cut: () => void;
  /** Drops all data without closing connections. */
  readonly silence: () => void;
  /** Forwards the next commit, then breaks the connection before its reply. */
  readonly loseNextCommit: () => void;
}

/** Starts a proxy to the database at `url`. */
export async function databaseProxy(url: string): Promise<Proxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let closed = true;
  let silent = false;
  let losing = false;
  const server = createServer((near) => {
    // It was pending when the others were broken.
    if (closed) {
      near.destroy();
      return;
    }
    const far = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (data: Buffer) => {
        if (!silent) to.write(data);
        if (from !== near || !losing || !data.includes('COMMIT')) return;
        losing = false;
        far.removeAllListeners('data').once('data', () => near.destroy());
      });
      from.on('error', () => undefined);
      from.once('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  let port = 0;
  const open = async () => {
    silent = false;
    closed = false;
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  };
  await open();
  const near = new URL(url);
  near.host = `127.0.0.1:${port}`;
  return {
    url: near.href,
    open,
    cut,
    async close() {
      closed = true;
      const ended = new Promise((resolve) => server.close(resolve));
      cut();
      await ended;
    },
    silence: () => {
      silent = true;
    },
    loseNextCommit: () => {
      losing = true;
    },
  };
}
