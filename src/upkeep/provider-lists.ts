import type { Logger } from 'pino';
import { maskAddresses } from '../lib/mask.ts';
import type { Pool } from '../store/postgres/pool.ts';
import {
  deferProviderRemoval,
  dueProviderRemovals,
  endProviderRemovals,
  type ProviderRemoval,
} from '../store/suppressions/provider-lists.ts';
import type { UpkeepStep } from './task.ts';

export interface ProviderListDeps {
  readonly pool: Pool;
  /**
   * Takes an address off the provider's own list: false when the provider keeps it there for good, rejected when it
   * cannot be asked now. Undefined where no provider has a list.
   */
  readonly removeFromProvider: ((address: string) => Promise<boolean>) | undefined;
  readonly log: Logger;
}

/** Addresses of one step; each is a call or two, one after the other. */
const AT_ONCE = 50;

/** The chore that follows removals from our lists to the provider's. */
export function makeProviderListActivities({ pool, removeFromProvider, log }: ProviderListDeps) {
  /** @returns false when the provider could not be asked */
  async function remove({ id, email, org_id: org }: ProviderRemoval): Promise<boolean> {
    try {
      if ((await removeFromProvider?.(email)) === false) log.warn({ org }, 'the provider keeps an address on its list');
      return true;
    } catch (error) {
      log.warn(
        { org, reason: maskAddresses(String(error)) },
        'the provider cannot be asked to take an address off its list',
      );
      await deferProviderRemoval(pool, id);
      return false;
    }
  }

  return {
    /**
     * Takes addresses off the provider's list that were taken off an organization's, unless another one needs them
     * there. While the provider is away, each is put off ever longer, and none is forgotten.
     */
    async clearProviderLists(): Promise<UpkeepStep> {
      const removals = await dueProviderRemovals(pool, AT_ONCE);
      let done = 0;
      for (const removal of removals) {
        // Whoever is away for one is away for the others.
        if (!removal.is_shared && !(await remove(removal))) return { done, next: null };
        await endProviderRemovals(pool, [removal.id]);
        done++;
      }
      return { done, next: removals.length === AT_ONCE ? '' : null };
    },
  };
}
