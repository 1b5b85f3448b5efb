/** A reply of Fastify. */
interface Reply {
  readonly raw: { readonly closed: boolean; readonly once: (event: 'close', listener: () => void) => unknown };
}

/** Calls `release` when the response is sent or the caller disconnects; immediately if that has already happened. */
export function onceClosed({ raw }: Reply, release: () => void): void {
  if (raw.closed) release();
  else raw.once('close', release);
}

/**
 * Returns a signal that aborts when the response is sent or the caller disconnects. Fastify's `request.signal` aborts as soon as
 * the body has been read.
 */
export function makeClosedSignal(reply: Reply): AbortSignal {
  const closed = new AbortController();
  onceClosed(reply, () => closed.abort());
  return closed.signal;
}
