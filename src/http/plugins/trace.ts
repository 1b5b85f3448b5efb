import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Tracer } from '../../telemetry/tracer.ts';
import { STATUS, toServiceError } from './errors.ts';

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * Wraps a handler in a span that starts at the arrival of the request. Messages that the handler stores continue the trace.
 * Requests that are refused before the handler have no span, so that unauthenticated callers cannot create traces.
 */
export function traceHandler(tracer: Tracer, handler: Handler): Handler {
  return async (request, reply) => {
    const { method, routeOptions, headers, id } = request;
    const { traceparent } = headers;
    const options = {
      kind: 'server',
      parent: typeof traceparent === 'string' ? traceparent : undefined,
      startedAgoMs: reply.elapsedTime,
      attributes: {
        'http.request.method': method,
        'http.route': routeOptions.url ?? '',
        'sendwright.request.id': id,
      },
    } as const;
    // A refusal is a valid response. If it were thrown inside the span, it would mark the span as failed.
    const outcome = await tracer.span(`${method} ${routeOptions.url}`, options, async ({ setAttributes, fail }) => {
      const [result] = await Promise.allSettled([handler(request, reply)]);
      const status = result.status === 'fulfilled' ? reply.statusCode : STATUS[toServiceError(result.reason).code];
      setAttributes({ 'http.response.status_code': status });
      if (status >= 500) fail();
      const { id: messageId } = ((result.status === 'fulfilled' && result.value) || {}) as { id?: unknown };
      if (typeof messageId === 'string') setAttributes({ 'sendwright.message.id': messageId });
      return result;
    });
    if (outcome.status === 'rejected') throw outcome.reason as Error;
    return outcome.value;
  };
}
