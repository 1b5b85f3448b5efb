import { drain } from '../src/delivery/webhooks/drain.ts';
import { withHeartbeat } from './temporal.ts';
import type { Drained, WebhookDeps } from '../src/delivery/webhooks/contract.ts';

/** The activities of the fleet `webhooks`. */
export function makeWebhookActivities(deps: WebhookDeps) {
  return {
    /**
     * Posts what is due to an endpoint, for some seconds. Safe to repeat: what was posted without having been written
     * down is posted again, with the same id.
     */
    async drainEndpoint({ id }: { readonly id: string }): Promise<Drained> {
      return withHeartbeat(() => drain(deps, id));
    },
  };
}
export type WebhookActivities = ReturnType<typeof makeWebhookActivities>;
