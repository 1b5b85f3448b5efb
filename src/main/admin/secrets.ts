import { reseal } from '../../intake/reseal.ts';
import { webhookSettings } from '../webhook-settings.ts';
import type { DatabaseCommand } from './command.ts';

/** What an operator does to the service's own secrets. */
export const SECRETS = {
  'secrets reseal': {
    usage: '',
    run: async (pool) => {
      const { secretKey } = await webhookSettings();
      return reseal(pool, secretKey);
    },
  },
} satisfies Record<string, DatabaseCommand>;
