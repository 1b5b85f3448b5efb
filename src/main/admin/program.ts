import { existsSync, readFileSync } from 'node:fs';
import { addAccountCommands } from './accounts.ts';
import { AdminCommand } from './command.ts';
import { addDomainCommands } from './domains.ts';
import { addEmailCommands } from './emails.ts';
import { addKeyCommands } from './keys.ts';
import { addListenCommand } from './listen.ts';
import { addNumberCommands, addSenderCommands } from './numbers.ts';
import { addMaintenanceCommands } from './maintenance.ts';
import { addStatisticsCommand } from './statistics.ts';
import { addSuppressionCommands } from './suppressions.ts';
import { addUserCommands } from './users.ts';
import { addWebhookCommands } from './webhooks.ts';

/** @param name the name of the command for users */
export function makeProgram(name: string): AdminCommand {
  const program = new AdminCommand(name)
    .description('Operates Sendwright. Commands print JSON. docs/command-line.md describes them.')
    .version(version(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help for a command')
    .helpCommand('help [command]', 'show help for a command');
  const groups = [
    addEmailCommands,
    addStatisticsCommand,
    addListenCommand,
    addAccountCommands,
    addKeyCommands,
    addUserCommands,
    addDomainCommands,
    addNumberCommands,
    addSenderCommands,
    addWebhookCommands,
    addSuppressionCommands,
    addMaintenanceCommands,
  ];
  for (const add of groups) add(program);
  return program;
}

/** This file runs from the sources and, one folder deeper, from `dist/`. */
function version(): string {
  const paths = ['../../../package.json', '../../../../package.json'].map((path) => new URL(path, import.meta.url));
  const path = paths.find((each) => existsSync(each)) ?? paths[0];
  return (JSON.parse(readFileSync(path as URL, 'utf8')) as { version: string }).version;
}
