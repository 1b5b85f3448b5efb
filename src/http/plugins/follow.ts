import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Tracer } from '../../telemetry/tracer.ts';
import { STATUS, toServiceError } from './errors.ts';
import type { Route } from '../route.ts';

/**
 * A handler as a span of its request, from the request's first byte on; what the handler leaves behind for others goes on
 * from it. A request that is refused before has none: by now its caller is known, and strangers make no traces.
 */
export function followed(tracer: Tracer, handler: Route['handler']): Route['handler'] {
  return async (request: FastifyRequest, reply: FastifyReply) => {
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
    // A refusal is an answer like others: thrown inside, it would be a failure of the span.
    const [settled] = await tracer.span(`${method} ${routeOptions.url}`, options, async ({ setAttributes, fail }) => {
      const results = await Promise.allSettled([handler(request, reply)]);
      const [result] = results;
      const status = result.status === 'fulfilled' ? reply.statusCode : STATUS[toServiceError(result.reason).code];
      setAttributes({ 'http.response.status_code': status });
      if (status >= 500) fail();
      const { id: made } = ((result.status === 'fulfilled' && result.value) || {}) as { id?: unknown };
      if (typeof made === 'string') setAttributes({ 'sendwright.message.id': made });
      return results;
    });
    if (settled.status === 'rejected') throw settled.reason as Error;
    return settled.value;
  };
}
