import { awaitTraffic, type Fault } from './fault.ts';
import type { ProxyName } from './stack.ts';

/** The connections of a vanished host stay open for this long, longer than any limit of ours. */
const OPEN_FOR_MS = 600_000;

/**
 * The host of a process loses its power in the middle of a transaction: its connections to Postgres and Temporal stay open
 * and nothing answers on them, while another host takes over.
 * @param statement name of a prepared statement of that transaction
 */
function disconnectHost(part: 'api' | 'worker', name: string, statement: string): Fault {
  const proxies: readonly ProxyName[] = [`${part}-postgres`, `${part}-temporal`];
  return {
    what: `the host of ${name} vanishes in a transaction; its connections stay open for 10 minutes`,
    stack: { proxies },
    async inject({ stack }) {
      let isOpen = false;
      await awaitTraffic(stack.proxy(`${part}-postgres`), (direction, data) => {
        if (direction === 'request' && data.includes(statement)) isOpen = true;
        const isNow = isOpen && direction === 'response';
        if (isNow) for (const proxy of proxies) stack.proxy(proxy).strand(OPEN_FOR_MS);
        return isNow;
      });
      stack.parts.kill(part);
      await stack.parts.serving();
    },
  };
}

export const hostFaults: Readonly<Record<string, Fault>> = {
  'api-host-vanishes': disconnectHost('api', 'the API', 'lock_email_rows'),
  'worker-host-vanishes': disconnectHost('worker', 'the worker', 'lock_emails'),
};
