import { ApplicationFailure } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import type { EmailStatus } from '../src/domain/email/email.ts';
import { announce } from '../src/delivery/email/announce.ts';
import type { EmailDeps, Member, MemberResult } from '../src/delivery/email/contract.ts';
import { deliver } from '../src/delivery/email/deliver.ts';
import { cancelScheduled, giveUp } from '../src/delivery/email/endings.ts';
import { policyWait, withHeartbeat } from './temporal.ts';

/** The result of `deliverEmail` for the workflow. */
export type Delivery = Exclude<MemberResult, { state: 'again' }>;

/** The activities of the fleet `email`. Each does one thing and may be repeated. */
export function makeEmailActivities(deps: EmailDeps) {
  return {
    /**
     * Sends one email that is due.
     * @throws ApplicationFailure of type NotTaken when it should be tried again
     */
    async deliverEmail(member: Member): Promise<Delivery> {
      const [result] = await withHeartbeat(() => deliver(deps, [member]));
      if (!result) throw new Error('a delivery came to nothing');
      if (result.state === 'ended') await announce(deps, [member.id]);
      if (result.state !== 'again') return result;
      throw ApplicationFailure.create({
        type: 'NotTaken',
        message: result.reason,
        category: ApplicationFailureCategory.BENIGN,
        ...(result.afterMs !== undefined && {
          nextRetryDelay: Math.ceil(Math.max(1, result.afterMs, result.postponed ? 0 : policyWait())),
        }),
      });
    },

    /**
     * Fails an email whose attempts are used up, with the last answer. Returns `queued` if attempts remain, since not every
     * failed activity reached a provider.
     */
    async giveUpEmail({ id, maximumAttempts }: { id: string; maximumAttempts: number }): Promise<EmailStatus> {
      const status = (await giveUp(deps, [id], maximumAttempts, id)).get(id) ?? 'canceled';
      if (status !== 'queued') deps.log.warn({ email: id, status, maximumAttempts }, 'email given up');
      await announce(deps, [id]);
      return status;
    },

    /** Cancels an email that is still scheduled. @returns its status afterwards */
    async cancelEmail({ id }: { id: string }): Promise<EmailStatus> {
      return (await cancelScheduled(deps.pool, [id], id)).get(id) ?? 'canceled';
    },
  };
}
export type EmailActivities = ReturnType<typeof makeEmailActivities>;
