import type { WorkflowClientInterceptor } from '@temporalio/client';
import { defaultPayloadConverter, type Headers } from '@temporalio/common';
import type { ActivityInterceptors, ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Logger } from 'pino';
import { TRACE_HEADER } from '../../../workflows/interceptors.ts';
import type { Config } from '../../config.ts';
import type { Tracer } from '../../telemetry/tracer.ts';

/** UTF-16 units of what OpenTelemetry says of a failure: a stack is among it. */
const REASON_LENGTH = 300;

/** The tracer of this process and what sends the last of its spans; undefined without `OTEL_EXPORTER_OTLP_ENDPOINT`. */
export async function openTracer(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Config,
  name: string,
  log: Logger,
): Promise<(Tracer & { readonly stop: () => Promise<void> }) | undefined> {
  if (endpoint === undefined) return undefined;
  // Loaded only here: who wants no traces pays nothing for them.
  const { startTracer } = await import('../../telemetry/otel.ts');
  return startTracer(name, (reason) => log.warn({ reason: reason.slice(0, REASON_LENGTH) }, 'traces cannot be sent'));
}

/** Tells workflows which span they go on from. */
export function tellWorkflows(tracer: Tracer): WorkflowClientInterceptor {
  const told = <T extends { readonly headers: Headers }>(input: T): T => {
    const traceparent = tracer.current();
    if (traceparent === undefined) return input;
    return { ...input, headers: { ...input.headers, [TRACE_HEADER]: defaultPayloadConverter.toPayload(traceparent) } };
  };
  return {
    startWithDetails: (input, next) => next(told(input)),
    signalWithStart: (input, next) => next(told(input)),
  };
}

/** Each activity of a workflow that was told of a span is one that goes on from it. */
export function followActivities(tracer: Tracer): ActivityInterceptorsFactory {
  return ({ info }): ActivityInterceptors => ({
    inbound: {
      execute(input, next) {
        const header = input.headers[TRACE_HEADER];
        if (!header) return next(input);
        const attributes = {
          'sendwright.workflow.id': info.workflowExecution?.workflowId ?? '',
          'sendwright.workflow.run': info.workflowExecution?.runId ?? '',
          'sendwright.activity.attempt': info.attempt,
        };
        const parent = defaultPayloadConverter.fromPayload<string>(header);
        return tracer.span(info.activityType, { kind: 'consumer', parent, attributes }, () => next(input));
      },
    },
  });
}
