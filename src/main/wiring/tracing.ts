import type { WorkflowClientInterceptor } from '@temporalio/client';
import { defaultPayloadConverter, type Headers } from '@temporalio/common';
import type { ActivityInterceptors, ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Logger } from 'pino';
import { TRACE_HEADER } from '../../../workflows/interceptors.ts';
import type { Config } from '../../config.ts';
import type { Tracer } from '../../telemetry/tracer.ts';

/** Maximum length of OpenTelemetry's failure messages in UTF-16 code units; they contain stacks. */
const MAX_REASON_LENGTH = 300;

/** Creates the tracer of this process; `stop` exports its last spans. Returns undefined without `OTEL_EXPORTER_OTLP_ENDPOINT`. */
export async function openTracer(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Config,
  name: string,
  log: Logger,
): Promise<(Tracer & { readonly stop: () => Promise<void> }) | undefined> {
  if (endpoint === undefined) return undefined;
  // Imported dynamically, so that it costs nothing when tracing is disabled.
  const { startTracer } = await import('../../telemetry/otel.ts');
  return startTracer(name, (reason) =>
    log.warn({ reason: reason.slice(0, MAX_REASON_LENGTH) }, 'could not export traces'),
  );
}

/** Adds the current span to the headers of started workflows. */
export function traceWorkflowStarts(tracer: Tracer): WorkflowClientInterceptor {
  const withHeader = <T extends { readonly headers: Headers }>(input: T): T => {
    const traceparent = tracer.current();
    if (traceparent === undefined) return input;
    return { ...input, headers: { ...input.headers, [TRACE_HEADER]: defaultPayloadConverter.toPayload(traceparent) } };
  };
  return {
    startWithDetails: (input, next) => next(withHeader(input)),
    signalWithStart: (input, next) => next(withHeader(input)),
  };
}

/** Creates a span for each activity of a workflow that has a parent span in its headers. */
export function traceActivities(tracer: Tracer): ActivityInterceptorsFactory {
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
