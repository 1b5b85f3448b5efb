import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A way to a database that can be broken. */
export interface Proxy {
  /** The database's URL by this way. */
  readonly url: string;
  /** Breaks all connections and takes no more until `open`. */
  readonly close: () => Promise<void>;
  readonly open: () => Promise<void>;
  /** Breaks all connections; new ones pass. */
  readonly cut: () => void;
  /** Lets nothing pass any more, and tells nobody. */
  readonly silence: () => void;
  /** The next commit reaches the database, and its answer is lost with the connection. */
  readonly loseNextCommit: () => void;
}

/** Opens a way to the database at `url`. */
export async function databaseProxy(url: string): Promise<Proxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let closed = true;
  let silent = false;
  let losing = false;
  const server = createServer((near) => {
    // It was on its way when the others were cut.
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
