import { announce } from '../src/delivery/email/announce.ts';
import { emailChannel } from '../src/delivery/email/channel.ts';
import type { EmailDeps } from '../src/delivery/email/contract.ts';
import { deliver } from '../src/delivery/email/deliver.ts';
import { makeDeliveryActivities } from './delivery.ts';

/** The activities of the fleet `email`. */
export function makeEmailActivities(deps: EmailDeps) {
  const email = makeDeliveryActivities(deps, emailChannel(deps), {
    deliver: (member) => deliver(deps, [member]),
    onEnded: (ids) => announce(deps, ids),
  });
  return { deliverEmail: email.deliver, giveUpEmail: email.giveUp, cancelEmail: email.cancel };
}
export type EmailActivities = ReturnType<typeof makeEmailActivities>;
