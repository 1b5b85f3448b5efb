import { type Command, InvalidArgumentError } from 'commander';
import { addSender, removeSender } from '../../accounts/sms-senders.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { listSendersOfAll } from '../../store/sms/senders.ts';
import { audited } from './audit.ts';
import { onDatabase, option, organizationOption, repeatable } from './command.ts';

interface SenderOptions {
  readonly organization: string;
  readonly number?: string;
  readonly messagingServiceSid?: string;
}

interface AddOptions extends SenderOptions {
  readonly country: readonly string[];
}

/** Adds the commands about numbers and messaging services that SMS come from. */
export function addSenderCommands(program: Command): void {
  const sender = program.command('sender').description('numbers and messaging services that SMS come from');
  const onSender = (command: Command, description: string) =>
    command
      .description(description)
      .addOption(organizationOption())
      .addOption(option('--number <number>', 'phone number in E.164 form, or a short code'))
      .addOption(option('--messaging-service-sid <MG…>', 'messaging service at Twilio'));
  onSender(sender.command('add'), 'Connect a number or messaging service of your account at Twilio.')
    .addOption(repeatable('--country <code>', 'country of recipients that it serves, such as US; all by default'))
    .action(onDatabase(addSmsSender));
  sender
    .command('list')
    .description('List the senders of an organization, or of all.')
    .addOption(option('--organization <id>', 'id of the organization, all by default'))
    .action(onDatabase(listSmsSenders));
  onSender(sender.command('remove'), 'Disconnect a sender.').alias('delete').action(onDatabase(removeSmsSender));
}

async function addSmsSender(pool: Pool, options: AddOptions): Promise<unknown> {
  const { organization, country } = options;
  const sender = senderOf(options);
  return audited(pool, { organization, action: 'sms.senders.create', detail: { sender } }, () =>
    addSender(
      pool,
      organization,
      sender,
      country.map((code) => code.toUpperCase()),
    ),
  );
}

async function listSmsSenders(pool: Pool, { organization }: { organization?: string }): Promise<unknown> {
  return { senders: await listSendersOfAll(pool, organization ?? null) };
}

async function removeSmsSender(pool: Pool, options: SenderOptions): Promise<unknown> {
  const { organization } = options;
  const sender = senderOf(options);
  return audited(pool, { organization, action: 'sms.senders.delete', detail: { sender } }, () =>
    removeSender(pool, organization, sender),
  );
}

function senderOf({ number, messagingServiceSid }: SenderOptions): string {
  const sender = number ?? messagingServiceSid;
  if (sender === undefined || (number !== undefined && messagingServiceSid !== undefined)) {
    throw new InvalidArgumentError('Give either --number or --messaging-service-sid.');
  }
  return sender;
}
