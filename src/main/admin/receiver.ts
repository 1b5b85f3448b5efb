import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { verifyWebhook, type WebhookEvent, WebhookVerificationError } from '../../../client/index.ts';
import { ANSWER_BYTES } from '../../domain/webhooks.ts';

/** What became of one delivery. */
export interface Forwarded {
  /** UTC with milliseconds. */
  readonly at: string;
  /** What the headers name it; the same for each of its tries. */
  readonly id: string | null;
  /** The type of its event. */
  readonly type: string | null;
  /** What the URL answered, and so do we; 401, 502, 504 are ours where `error` says why. */
  readonly status: number;
  readonly ms: number;
  /** Why it did not get there, or no answer came. */
  readonly error?: string;
}

/** Takes deliveries of one endpoint and passes them on. */
export interface Receiver {
  readonly address: AddressInfo;
  /** Where it takes them, by an address that leads to it: a path that nobody can guess. */
  readonly under: (base: string) => string;
  /** Whose signature counts from now on; those that come before wait for it. */
  readonly trust: (secret: string) => void;
  /** Takes no more, and gives those under way two seconds. */
  readonly close: () => Promise<void>;
}

/** Bytes of a delivery's body; ours stay far below. */
const MOST = 1_048_576;
/** Milliseconds for the URL's answer: just less than the service waits for ours. */
const WITHIN = 14_000;
/** Milliseconds for what is under way at the end. */
const GRACE = 2_000;

/** Headers of one connection and not of the delivery (RFC 9110 §7.6.1), and those that are made anew from the body and URL. */
const OWN = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'host',
  'content-length',
  'expect',
];

/**
 * Starts a receiver on loopback. What it gets, with a valid signature, it posts to `target`: the same bytes and the same
 * headers; and answers with what that answers.
 * @param port 0 for any that is free
 * @param tell is called once for each delivery, when its answer is known
 * @throws what `listen` throws
 */
export async function startReceiver(target: URL, port: number, tell: (delivery: Forwarded) => void): Promise<Receiver> {
  const path = `/${randomBytes(16).toString('hex')}`;
  const agent = new Agent();
  let trust: (secret: string) => void = () => undefined;
  const secret = new Promise<string>((resolve) => (trust = resolve));

  async function take(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const began = performance.now();
    const body = await readBody(incoming);
    // Neither is a delivery.
    if (incoming.method !== 'POST' || incoming.url?.endsWith(path) !== true || !body) {
      answer(outgoing, body ? 404 : 413);
      return;
    }
    const event = verified(body, incoming.headers, await secret);
    const passed =
      event instanceof Error
        ? { status: 401, error: `${event.message}; it was not forwarded` }
        : await pass(agent, target, incoming.rawHeaders, body);
    const { status, error } = passed;
    answer(outgoing, status, passed);
    tell({
      at: new Date().toISOString(),
      id: textOf(incoming.headers['webhook-id']),
      type: event instanceof Error ? null : event.type,
      status,
      ms: Math.round(performance.now() - began),
      ...(error !== undefined && { error }),
    });
  }

  const server = createServer((incoming, outgoing) => {
    // Whoever asked has gone.
    take(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: server.address() as AddressInfo,
    under: (base) => base + path,
    trust,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      await Promise.race([closed, sleep(GRACE, undefined, { ref: false })]);
      server.closeAllConnections();
      await agent.destroy();
    },
  };
}

function verified(body: Buffer, headers: IncomingHttpHeaders, secret: string): WebhookEvent | WebhookVerificationError {
  try {
    return verifyWebhook(body, headers, secret);
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error;
    throw error;
  }
}

/** Undefined when it is too large. */
async function readBody(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MOST) chunks.push(chunk);
  }
  return bytes <= MOST ? Buffer.concat(chunks) : undefined;
}

interface Passed {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
  readonly error?: string;
}

async function pass(agent: Agent, target: URL, rawHeaders: readonly string[], body: Buffer): Promise<Passed> {
  const signal = AbortSignal.timeout(WITHIN);
  try {
    const answer = await request(target, {
      method: 'POST',
      dispatcher: agent,
      headers: endToEnd(rawHeaders),
      body,
      signal,
    });
    const kept = ['content-type', 'retry-after'].flatMap((name) => {
      const value = textOf(answer.headers[name]);
      return value === null ? [] : [[name, value]];
    });
    const start = await firstBytes(answer.body);
    return { status: answer.statusCode, headers: Object.fromEntries(kept) as Record<string, string>, body: start };
  } catch (error) {
    if (signal.aborted) return { status: 504, error: `${target.href} takes longer than ${WITHIN / 1_000} seconds` };
    const { code, message } = error as { code?: string; message: string };
    return { status: 502, error: `${target.href} does not answer: ${code ?? message}` };
  }
}

function endToEnd(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, index) => !OWN.includes(String(rawHeaders[index - (index % 2)]).toLowerCase()));
}

/** As much of an answer as the service keeps; one that breaks off is as long as it came. */
async function firstBytes(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const kept: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      kept.push(chunk);
      bytes += chunk.length;
      if (bytes >= ANSWER_BYTES) break;
    }
  } catch {
    // The status has arrived.
  }
  return Buffer.concat(kept).subarray(0, ANSWER_BYTES);
}

function answer(outgoing: ServerResponse, status: number, { headers = {}, body, error }: Partial<Passed> = {}): void {
  outgoing.writeHead(status, headers);
  // These have no body (RFC 9110 §6.4.1), and Node refuses one.
  if (status === 204 || status === 304) outgoing.end();
  else outgoing.end(body ?? error ?? '');
}

function textOf(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : null;
}
