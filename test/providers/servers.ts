import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

/** Opens a server on a free port of the loopback; it closes with the test. @returns its port */
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

/** An HTTP server with this listener. @returns its URL */
export async function httpServer(t: TestContext, listener: RequestListener): Promise<string> {
  // On a busy machine, seconds may pass between two requests of a connection: it must not end just when the next one comes.
  return `http://127.0.0.1:${await open(t, createServer({ keepAliveTimeout: 0 }, listener))}`;
}

/** A TCP server with this listener. @returns its port */
export function tcpServer(t: TestContext, listener: (socket: Socket) => void): Promise<number> {
  return open(t, createTcpServer(listener));
}

/** A port without a server. */
export async function closedPort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** An HTTP answer; a body that is no text is written as JSON. */
export interface Answer {
  /** 0 breaks the connection. */
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A listener that sends this answer after the request was read. */
export function answering({ status = 200, body = '', headers = {} }: Answer): RequestListener {
  return (request, response) => {
    const send = () => {
      if (status === 0) request.socket.destroy();
      else response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    if (request.readableEnded) send();
    else request.resume().once('end', send);
  };
}

/** A request as a recording server received it. */
export interface Recorded {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** An HTTP server that records requests and sends this answer to each. */
export async function recordingServer(t: TestContext, answer: Answer | ((recorded: Recorded) => Answer)) {
  const requests: Recorded[] = [];
  const record = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url: path = '', headers } = request;
    const recorded = { method, url: path, headers, body: await buffer(request) };
    requests.push(recorded);
    answering(typeof answer === 'function' ? answer(recorded) : answer)(request, response);
  };
  const url = await httpServer(t, (request, response) => void record(request, response));
  return { url, requests };
}
