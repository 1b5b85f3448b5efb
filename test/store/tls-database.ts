import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { TestContext } from 'node:test';
import { TLSSocket } from 'node:tls';
import { CERTIFICATE, KEY } from '../providers/certificate.ts';

/**
 * Starts a server that answers Postgres's request for TLS: S begins a handshake with a self-signed certificate, N refuses TLS.
 * @returns the URL of a database there
 */
export async function startTlsDatabase(t: TestContext, answer: 'S' | 'N'): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(answer);
      if (answer === 'N') return;
      const secure = new TLSSocket(socket, { isServer: true, key: KEY, cert: CERTIFICATE });
      secure.on('error', () => undefined);
    });
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  t.after(() => server.close());
  return `postgres://x@localhost:${(server.address() as AddressInfo).port}/x?sslmode=verify-full`;
}
