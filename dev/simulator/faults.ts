import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';

/** Responds with 200 and HTML, as a proxy in front of a provider may. */
export function sendGarbage(reply: FastifyReply): FastifyReply {
  return reply.type('text/html').send("<!doctype html><title>Garbage</title><p>This is not the provider's answer.");
}

/** Resets the connection instead of responding. */
export function resetConnection(reply: FastifyReply): FastifyReply {
  reply.raw.socket?.resetAndDestroy();
  return reply.hijack();
}

/** Waits. Rejects if the simulator ends. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds > 0) await sleep(milliseconds, undefined, { signal });
}
