import type { Command } from 'commander';
import { reseal } from '../../accounts/reseal.ts';
import { webhookSettings } from '../wiring/webhook-settings.ts';
import { onDatabase } from './command.ts';

/** Adds the command about the service's own secrets. */
export function addSecretCommands(program: Command): void {
  program
    .command('secrets')
    .description("the service's own secrets")
    .command('reseal')
    .description('Encrypt all stored secrets again with the current SECRET_KEY, and print how many.')
    .action(
      onDatabase(async (pool) => {
        const { secretKey } = await webhookSettings();
        return reseal(pool, secretKey);
      }),
    );
}
