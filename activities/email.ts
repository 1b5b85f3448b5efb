import { ApplicationFailure, Context, type Info } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import type { EmailStatus } from '../src/domain/email.ts';
import { project } from '../src/projection/emails.ts';
import { lastAttempts, lockEmails } from '../src/store/attempts.ts';
import { transaction } from '../src/store/pool.ts';
import { isUnsettled } from './claim.ts';
import type { EmailDeps, Member, MemberResult } from './contract.ts';
import { deliver } from './deliver.ts';

/** What `deliverEmail` tells the workflow when it does not throw. */
export type Delivery = Exclude<MemberResult, { state: 'again' }>;

/** Seconds of silence after which Temporal takes a worker for dead are in the workflow; this is three times as often. */
const HEARTBEAT_EVERY = 5_000;

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
      if (result.state !== 'again') return result;
      throw ApplicationFailure.create({
        type: 'NotTaken',
        message: result.reason,
        category: ApplicationFailureCategory.BENIGN,
        ...(result.after !== undefined && {
          nextRetryDelay: Math.ceil(Math.max(1, result.after, policyWait(Context.current().info))),
        }),
      });
    },

    /**
     * Ends an email whose attempts are used up: it fails with the last answer. Says `queued` when it still has some,
     * since not every failed activity reached a provider.
     */
    async giveUpEmail({ id, maximumAttempts }: { id: string; maximumAttempts: number }): Promise<EmailStatus> {
      return transaction(deps.pool, async (client) => {
        const [email] = await lockEmails(client, [id]);
        if (email?.status !== 'queued') return email?.status ?? 'canceled';
        const [last] = await lastAttempts(client, [id]);
        if (!last) return 'queued';
        const unsettled = isUnsettled(last);
        if (unsettled ? last.checks < maximumAttempts : last.n < maximumAttempts) return 'queued';
        const doubt = unsettled ? ' The provider may have taken it all the same.' : '';
        const error = `${last.detail ?? 'The provider did not answer.'} Given up after ${last.n} attempts.${doubt}`;
        await project(client, 'failed', [{ id, error }]);
        return 'failed';
      });
    },

    /** Cancels an email that is still scheduled. @returns its status afterwards */
    async cancelEmail({ id }: { id: string }): Promise<EmailStatus> {
      return transaction(deps.pool, async (client) => {
        await project(client, 'canceled', [{ id }]);
        const [email] = await lockEmails(client, [id]);
        return email?.status ?? 'canceled';
      });
    },
  };
}
export type EmailActivities = ReturnType<typeof makeEmailActivities>;

/**
 * Milliseconds that the retry policy would wait now. A provider that asks us back sooner than that, every time, would
 * else use up all attempts in no time.
 */
function policyWait({ attempt, retryPolicy }: Info): number {
  // Its intervals are milliseconds here, although the SDK's type allows them in words.
  const policy = retryPolicy as
    { initialInterval?: number; backoffCoefficient?: number; maximumInterval?: number } | undefined;
  const { initialInterval = 0, backoffCoefficient = 1, maximumInterval = Infinity } = policy ?? {};
  return Math.min(initialInterval * backoffCoefficient ** (attempt - 1), maximumInterval);
}

/** Tells Temporal that this worker lives while a slow call is under way, so that only a dead one's work is redone soon. */
async function withHeartbeat<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_EVERY);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
