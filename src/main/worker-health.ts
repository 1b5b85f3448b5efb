import { once } from 'node:events';
import { createServer } from 'node:http';

/**
 * Answers `GET /healthz`: 200 while the worker works, 503 while it starts, waits for Temporal or ends.
 * @returns ends the listener
 */
export async function serveHealth(host: string, port: number, works: () => boolean): Promise<() => void> {
  const server = createServer((request, response) => {
    const known = request.method === 'GET' && request.url === '/healthz';
    response.statusCode = !known ? 404 : works() ? 200 : 503;
    response.end();
  });
  server.listen(port, host);
  await once(server, 'listening');
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
