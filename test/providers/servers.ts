import { createServer, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** Opens a server on a free port of the loopback; it ends with the test, whoever is connected. @returns its port */
export async function open(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

/** An HTTP server that answers as it is told. @returns its URL */
export async function httpServer(t: TestContext, listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await open(t, createServer(listener))}`;
}

/** A server that does with each connection what it is told. @returns its port */
export function tcpServer(t: TestContext, listener: (socket: Socket) => void): Promise<number> {
  return open(t, createTcpServer(listener));
}

/** A port on which nobody listens. */
export async function closedPort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** An HTTP answer; a body that is no text is written as JSON. */
export interface Answer {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers each request so, when it has been read. */
export function answering({ status = 200, body = '', headers = {} }: Answer): RequestListener {
  return (request, response) => {
    request.resume().once('end', () => {
      response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  };
}
