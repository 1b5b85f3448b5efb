import type { TestContext } from 'node:test';
import { makePool, type Pool } from '../../src/store/postgres/pool.ts';
import { startProxy } from '../faults/proxy.ts';

/** A proxy to a database whose connections can be broken. */
export interface Proxy {
  /** The database's URL through the proxy. */
  readonly url: string;
  /** Breaks all connections and refuses new ones until `open`. */
  readonly close: () => Promise<void>;
  readonly open: () => Promise<void>;
  /** Breaks all connections and accepts new ones. */
  readonly cut: () => void;
  /** Holds all data back without closing connections. */
  readonly silence: () => void;
  /** Forwards the next commit, then breaks all connections before its reply. */
  readonly loseNextCommit: () => void;
}

/** Starts a proxy to the database at `url`. */
export async function databaseProxy(url: string): Promise<Proxy> {
  const near = new URL(url);
  const proxy = await startProxy(Number(near.port), near.hostname);
  near.host = `127.0.0.1:${proxy.port}`;
  return {
    url: near.href,
    cut: proxy.cut,
    close: async () => proxy.shut(),
    async open() {
      proxy.release();
      proxy.open();
    },
    silence() {
      proxy.hold('request');
      proxy.hold('response');
    },
    loseNextCommit() {
      // Statements before the COMMIT may be answered in a packet of their own, while it is still to be executed.
      const stop = proxy.watch((direction, data) => {
        if (direction === 'request' || !data.includes('COMMIT')) return;
        stop();
        proxy.cut();
      });
    },
  };
}

/** A pool that reaches the database at `url` through a proxy. Both end with the test. */
export async function proxiedPool(t: TestContext, url: string, connections = 2): Promise<{ proxy: Proxy; pool: Pool }> {
  const proxy = await databaseProxy(url);
  const pool = makePool(proxy.url, 'test', connections, () => undefined);
  t.after(async () => {
    // Through a silent proxy, the pool could not end its connections.
    await proxy.close();
    await pool.end();
  });
  return { proxy, pool };
}
