import type { Headers, Payload } from '@temporalio/common';
import type { WorkflowInterceptors } from '@temporalio/workflow';

/** The header with the span that workflows and activities continue. */
export const TRACE_HEADER = 'traceparent';

/**
 * Passes the trace context that a workflow received on to its activities, unchanged. No tracing code runs in the workflow, so
 * enabling or disabling traces does not change what a workflow does, also if it has waited for weeks.
 */
export function interceptors(): WorkflowInterceptors {
  let traceparent: Payload | undefined;
  const withTrace = <T extends { readonly headers: Headers }>(input: T): T =>
    traceparent ? { ...input, headers: { ...input.headers, [TRACE_HEADER]: traceparent } } : input;
  return {
    inbound: [
      {
        execute(input, next) {
          traceparent = input.headers[TRACE_HEADER];
          return next(input);
        },
      },
    ],
    outbound: [
      {
        scheduleActivity: (input, next) => next(withTrace(input)),
        scheduleLocalActivity: (input, next) => next(withTrace(input)),
      },
    ],
  };
}
