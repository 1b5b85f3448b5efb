import type { Server } from 'node:http';
import { isInRanges, networksOf, type Ranges } from '../../lib/ip-ranges.ts';

/** The share of one network in all connections. */
const SHARE = 1 / 10;

/**
 * Limits the connections of a server, and those of each network (`networksOf`) to a tenth of them. Further connections are closed
 * without a response.
 * @param proxies trusted proxies: their connections carry the requests of many networks, so they have no such limit
 */
export function limitConnections(server: Server, max: number, proxies: Ranges): void {
  server.maxConnections = max;
  const share = Math.ceil(max * SHARE);
  /** Open connections by network. */
  const open = new Map<string, number>();
  const add = (network: string, change: 1 | -1): void => {
    const connections = (open.get(network) ?? 0) + change;
    if (connections === 0) open.delete(network);
    else open.set(network, connections);
  };
  server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    if (isInRanges(address, proxies)) return;
    const networks = networksOf(address);
    if (networks.some((network) => (open.get(network) ?? 0) >= share)) {
      socket.destroy();
      return;
    }
    for (const network of networks) add(network, 1);
    socket.once('close', () => {
      for (const network of networks) add(network, -1);
    });
  });
}
