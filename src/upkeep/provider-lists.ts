import type { Logger } from 'pino';
import { maskAddresses } from '../lib/mask.ts';
import type { Pool } from '../store/postgres/pool.ts';
import {
  deferProviderRemoval,
  dueProviderRemovals,
  endProviderRemovals,
  type ProviderRemoval,
} from '../store/suppressions/provider-lists.ts';
import { toStep, type UpkeepStep } from './task.ts';

export interface ProviderListDeps {
  readonly pool: Pool;
  /**
   * Removes an address from the provider's suppression list. Returns false if the provider keeps it permanently; rejects if
   * the provider is unreachable. Undefined if no provider has a list.
   */
  readonly removeFromProvider: ((address: string) => Promise<boolean>) | undefined;
  readonly log: Logger;
}

/** Addresses per step; each takes one or two sequential calls. */
const REMOVALS_PER_STEP = 50;

/** The maintenance task that repeats removals from our suppression lists at the provider. */
export function makeProviderListUpkeep({ pool, removeFromProvider, log }: ProviderListDeps) {
  /** @returns false if the provider is unreachable */
  async function remove({ id, email, org_id: org }: ProviderRemoval): Promise<boolean> {
    try {
      if ((await removeFromProvider?.(email)) === false)
        log.warn({ org }, 'provider keeps an address on its suppression list');
      return true;
    } catch (error) {
      log.warn(
        { org, reason: maskAddresses(String(error)) },
        'could not remove an address from the suppression list of the provider',
      );
      await deferProviderRemoval(pool, id);
      return false;
    }
  }

  return {
    /**
     * Removes addresses from the provider's list that an organization has removed from its own, unless another organization
     * needs them there. Failures are retried with exponential backoff.
     */
    async clearProviderLists(): Promise<UpkeepStep> {
      const removals = await dueProviderRemovals(pool, REMOVALS_PER_STEP);
      let done = 0;
      for (const removal of removals) {
        // The provider is probably unreachable for the other addresses as well.
        if (!removal.is_shared && !(await remove(removal))) return { done, next: null };
        await endProviderRemovals(pool, [removal.id]);
        done++;
      }
      return toStep(done, REMOVALS_PER_STEP, removals.length);
    },
  };
}
