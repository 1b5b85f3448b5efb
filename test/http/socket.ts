import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, checkAnswer } from './service.ts';

/** An answer over a plain socket, to a request that HTTP clients cannot send. */
export interface RawAnswer extends Answer {
  /** True if the server closed the connection after it. */
  readonly closed: boolean;
}

export async function connectSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  // A server may answer and close the connection before it has read everything.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Sends bytes and waits for one answer. */
export async function sendBytes(port: number, request: string | Buffer): Promise<RawAnswer> {
  const socket = await connectSocket(port);
  socket.write(request);
  return listen(socket);
}

/** Waits for the next answer on a socket and destroys the socket. */
export async function listen(socket: Socket): Promise<RawAnswer> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  while (!socket.closed && !isComplete(text)) await sleep(2);
  // The server closes right after its answer, or not at all.
  for (let i = 0; i < 25 && !socket.closed; i++) await sleep(2);
  const { closed } = socket;
  socket.destroy();
  const answer = { ...read(text), closed };
  checkAnswer(answer);
  return answer;
}

/** The head of a POST request. */
export function head(path: string, key: string | undefined, ...lines: string[]): string {
  const authorization = key === undefined ? [] : [`Authorization: Bearer ${key}`];
  return [`POST ${path} HTTP/1.1`, 'Host: api.test', ...authorization, ...lines, '', ''].join('\r\n');
}

function isComplete(text: string): boolean {
  const { headers, text: body, status } = read(text);
  return status > 0 && body.length >= Number(headers['content-length'] ?? 0);
}

function read(text: string): Answer {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return { status: 0, headers: {}, text, body: undefined };
  const [line, ...fields] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => {
      const colon = field.indexOf(':');
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
    }),
  );
  const body = text.slice(end + 4);
  return { status: Number(line?.split(' ')[1]), headers, text: body, body: body === '' ? undefined : JSON.parse(body) };
}
