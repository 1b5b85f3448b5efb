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
export interface ForwardedDelivery {
  /** UTC with milliseconds. */
  readonly at: string;
  /** The id in the headers, which is the same for all attempts. */
  readonly id: string | null;
  readonly type: string | null;
  /** The status of the target's response, which is returned to the service. If `error` is set, 401, 502 and 504 are our own. */
  readonly status: number;
  readonly ms: number;
  readonly error?: string;
}

/** Maximum size of a body; actual deliveries are much smaller. */
const MAX_BODY_BYTES = 1_048_576;
/** Timeout of the target's response, slightly less than that of the service. */
const RESPONSE_TIMEOUT_MS = 14_000;
/** How long `close` waits for pending deliveries. */
const CLOSE_GRACE_MS = 2_000;

/** Headers of the connection (RFC 9110 §7.6.1), and headers derived from the body and URL. */
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
 * and returns the target's response.
 * @param port 0 for any free port
 */
export async function startReceiver(target: URL, port: number, report: (delivery: ForwardedDelivery) => void) {
  const path = `/${randomBytes(16).toString('hex')}`;
  const agent = new Agent();
  let trust: (secret: string) => void = () => undefined;
  const secret = new Promise<string>((resolve) => (trust = resolve));

  async function receive(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const began = performance.now();
    const body = await readBody(incoming);
    // Not a delivery.
    if (incoming.method !== 'POST' || incoming.url?.endsWith(path) !== true || !body) {
      answer(outgoing, body ? 404 : 413);
      return;
    }
    const event = verify(body, incoming.headers, await secret);
    const response =
      event instanceof Error
        ? { status: 401, error: `${event.message}; it was not forwarded` }
        : await forward(agent, target, incoming.rawHeaders, body);
    const { status, error } = response;
    answer(outgoing, status, response);
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
    receive(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: server.address() as AddressInfo,
    /** Returns the URL of the receiver relative to a base URL; its path is secret. */
    under: (base: string) => base + path,
    /** Sets the secret for verifying signatures. Deliveries that arrive earlier wait for it. */
    trust,
    /** Stops accepting deliveries, and waits two seconds for pending ones. */
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

function verify(body: Buffer, headers: IncomingHttpHeaders, secret: string): WebhookEvent | WebhookVerificationError {
  try {
    return verifyWebhook(body, headers, secret);
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error;
    throw error;
  }
}

/** @returns undefined if the body is too large */
async function readBody(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return bytes <= MAX_BODY_BYTES ? Buffer.concat(chunks) : undefined;
}

interface TargetResponse {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
  readonly error?: string;
}

async function forward(
  agent: Agent,
  target: URL,
  rawHeaders: readonly string[],
  body: Buffer,
): Promise<TargetResponse> {
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  try {
    const request = { method: 'POST', origin: target.origin, path: target.pathname + target.search } as const;
    const answer = await exchange(
      agent,
      { ...request, headers: endToEndHeaders(rawHeaders), body },
      ANSWER_BYTES,
      signal,
    );
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

function endToEndHeaders(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter(
    (_, index) => !CONNECTION_HEADERS.includes(String(rawHeaders[index - (index % 2)]).toLowerCase()),
  );
}

function answer(
  outgoing: ServerResponse,
  status: number,
  { headers = {}, body, error }: Partial<TargetResponse> = {},
): void {
  outgoing.writeHead(status, headers);
  // These responses have no body (RFC 9110 §6.4.1), and Node throws if there is one.
  if (status === 204 || status === 304) outgoing.end();
  else outgoing.end(body ?? error ?? '');
}

function textOf(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : null;
}
