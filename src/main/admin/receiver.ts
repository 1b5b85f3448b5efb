import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { verifyWebhook, type WebhookEvent, WebhookVerificationError } from '../../../client/index.ts';
import { ANSWER_BYTES } from '../../domain/webhooks.ts';
import { exchange } from '../../public-fetch/exchange.ts';

/** The result of one delivery. */
export interface Forwarded {
  /** UTC with milliseconds. */
  readonly at: string;
  /** The id in the headers; the same for each attempt. */
  readonly id: string | null;
  readonly type: string | null;
  /** The status of the URL's response, which is returned to the service. 401, 502 and 504 are ours if `error` is set. */
  readonly status: number;
  readonly ms: number;
  readonly error?: string;
}

/** Largest body; actual deliveries are much smaller. */
const MAX_BODY_BYTES = 1_048_576;
/** Timeout of the URL's response, just below that of the service. */
const RESPONSE_TIMEOUT_MS = 14_000;
/** Time for pending deliveries at the end. */
const CLOSE_GRACE_MS = 2_000;

/** Headers that belong to the connection (RFC 9110 §7.6.1), or are derived from the body and URL. */
const CONNECTION_HEADERS = [
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
 * Starts a receiver on loopback. It forwards deliveries with a valid signature to `target`, with the same body and headers,
 * and returns the response.
 * @param port 0 for any free port
 */
export async function startReceiver(target: URL, port: number, report: (delivery: Forwarded) => void) {
  const path = `/${randomBytes(16).toString('hex')}`;
  const agent = new Agent();
  let trust: (secret: string) => void = () => undefined;
  const secret = new Promise<string>((resolve) => (trust = resolve));

  async function take(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const began = performance.now();
    const body = await readBody(incoming);
    // Not a delivery.
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
    report({
      at: new Date().toISOString(),
      id: textOf(incoming.headers['webhook-id']),
      type: event instanceof Error ? null : event.type,
      status,
      ms: Math.round(performance.now() - began),
      ...(error !== undefined && { error }),
    });
  }

  const server = createServer((incoming, outgoing) => {
    // The client has disconnected.
    take(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: server.address() as AddressInfo,
    /** Returns the URL of the receiver below a base; its path is secret. */
    under: (base: string) => base + path,
    /** Sets the secret for verifying signatures; earlier deliveries wait for it. */
    trust,
    /** Stops accepting deliveries, and gives pending ones two seconds. */
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      await Promise.race([closed, sleep(CLOSE_GRACE_MS, undefined, { ref: false })]);
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

/** @returns undefined when the body is too large */
async function readBody(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return bytes <= MAX_BODY_BYTES ? Buffer.concat(chunks) : undefined;
}

interface Passed {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
  readonly error?: string;
}

async function pass(agent: Agent, target: URL, rawHeaders: readonly string[], body: Buffer): Promise<Passed> {
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  try {
    const request = { method: 'POST', origin: target.origin, path: target.pathname + target.search } as const;
    const answer = await exchange(agent, { ...request, headers: endToEnd(rawHeaders), body }, ANSWER_BYTES, signal);
    const kept = ['content-type', 'retry-after'].flatMap((name) => {
      const value = textOf(answer.headers[name]);
      return value === null ? [] : [[name, value]];
    });
    return { status: answer.status, headers: Object.fromEntries(kept) as Record<string, string>, body: answer.body };
  } catch (error) {
    if (signal.aborted)
      return { status: 504, error: `${target.href} takes longer than ${RESPONSE_TIMEOUT_MS / 1_000} seconds` };
    const { code, message } = error as { code?: string; message: string };
    return { status: 502, error: `${target.href} does not answer: ${code ?? message}` };
  }
}

function endToEnd(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter(
    (_, index) => !CONNECTION_HEADERS.includes(String(rawHeaders[index - (index % 2)]).toLowerCase()),
  );
}

function answer(outgoing: ServerResponse, status: number, { headers = {}, body, error }: Partial<Passed> = {}): void {
  outgoing.writeHead(status, headers);
  // Responses without a body (RFC 9110 §6.4.1); Node refuses one.
  if (status === 204 || status === 304) outgoing.end();
  else outgoing.end(body ?? error ?? '');
}

function textOf(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : null;
}
