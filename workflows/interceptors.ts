import type { Payload } from '@temporalio/common';
import type { WorkflowInterceptors } from '@temporalio/workflow';

/** The header with the span that workflows and activities continue. */
export const TRACE_HEADER = 'traceparent';

/**
 * Hands what a workflow was told to its activities, as it came: no code that makes traces runs in here, so whether they are
 * made changes nothing that a workflow does, also for one that has waited for weeks.
 */
export function interceptors(): WorkflowInterceptors {
  let traceparent: Payload | undefined;
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
        scheduleActivity(input, next) {
          if (!traceparent) return next(input);
          return next({ ...input, headers: { ...input.headers, [TRACE_HEADER]: traceparent } });
        },
      },
    ],
  };
}
