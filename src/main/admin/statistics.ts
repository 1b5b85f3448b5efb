import type { Command } from 'commander';
import type { Api } from './api.ts';
import { onApi, option } from './command.ts';

/** The options have the names of the API's parameters. */
type StatisticsOptions = Parameters<Api['client']['stats']['get']>[0];

export function addStatisticsCommand(program: Command): void {
  program
    .command('stats')
    .description('Show how many messages of the organization have reached each state, with rates.')
    .addOption(option('--from <time>', 'begin of the period; 24 hours before its end by default'))
    .addOption(option('--to <time>', 'end of the period; now by default'))
    .addOption(option('--step <step>', 'hour, which is the default, or day'))
    .addOption(option('--by <dimension>', 'a series for each domain, batch, key, bounce_reason or value of tag:<name>'))
    .addOption(option('--channel <channel>', 'email, which is the default, chatapp or sms'))
    .action(onApi(({ client }, options: StatisticsOptions) => client.stats.get(options)));
}
