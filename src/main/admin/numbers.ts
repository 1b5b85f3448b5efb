import { text as readText } from 'node:stream/consumers';
import { type Command, InvalidArgumentError } from 'commander';
import { CHAT_PROVIDERS } from '../../domain/chat/chat.ts';
import { readTemplates } from '../../dashboard/templates.ts';
import {
  connectNumberForOperator,
  addNumberTemplates,
  chatSeal,
  removeNumberForOperator,
} from '../../accounts/chat-numbers.ts';
import { addSender, removeSender } from '../../accounts/sms-senders.ts';
import { listNumbersOfAll, type NumberTemplate } from '../../store/chat/numbers.ts';
import { secretKeysOf } from '../../lib/secret-key.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { listSendersOfAll } from '../../store/sms/senders.ts';
import { readCommandSettings } from '../wiring/command-settings.ts';
import { audited } from './audit.ts';
import { addListOfAll, commandsOf, type OfOrganization, onDatabase, option, repeatable, required } from './command.ts';

interface NumberOptions extends OfOrganization {
  readonly number: string;
}

interface TemplateOptions extends NumberOptions {
  readonly template: readonly string[];
}

interface AddOptions extends TemplateOptions {
  readonly provider: (typeof CHAT_PROVIDERS)[number];
  readonly phoneNumberId?: string;
  readonly accountSid?: string;
  readonly token?: string;
}

export function addNumberCommands(program: Command): void {
  const number = program.command('number').description('numbers that chat-app messages come from');
  const template = program.command('template').description('templates of chat-app messages');
  const onNumber = (group: Command, name: string, description: string) =>
    commandsOf(group)(name, description).addOption(
      required('--number <number>', 'phone number in E.164 form, such as +12025550144'),
    );
  const templateOption = () =>
    repeatable('--template <name,language,HX…[,variable]…>', 'a template, with the id of its content at Twilio');
  onNumber(number, 'add', 'Connect a number without asking its owner for a proof.')
    .addOption(required('--provider <provider>', 'provider of the number').choices(CHAT_PROVIDERS))
    .addOption(option('--phone-number-id <id>', "Meta's id of the number"))
    .addOption(option('--account-sid <AC…>', 'account of its own at Twilio, of which --token is the auth token'))
    .addOption(
      option('--token <token>', 'token of an account of its own, - for standard input; without it your account sends'),
    )
    .addOption(templateOption())
    .action(onDatabase(addChatNumber));
  // `verified_by` is null for unconfirmed numbers, and "operator" or "provider" for others.
  addListOfAll(number, 'List the numbers of an organization, or of all.', async (pool, orgId) => ({
    numbers: await listNumbersOfAll(pool, orgId),
  }));
  onNumber(number, 'remove', 'Disconnect a number.').alias('delete').action(onDatabase(removeChatNumber));
  onNumber(template, 'add', 'State which contents at Twilio the templates of a number are.')
    .addOption(templateOption())
    .action(onDatabase(addTemplates));
}

async function addChatNumber(pool: Pool, options: AddOptions): Promise<unknown> {
  const { organization, number, provider, phoneNumberId = null, accountSid = null, token = null } = options;
  const secretKeys = secretKeysOf(await readCommandSettings('SECRET_KEY'));
  const request = {
    number,
    provider,
    phone_number_id: phoneNumberId,
    account_sid: accountSid,
    token: token === '-' ? (await readText(process.stdin)).trim() : token,
    templates: templatesOf(options),
  };
  return audited(pool, { organization, action: 'chatapp.numbers.create' }, () =>
    connectNumberForOperator(pool, chatSeal(secretKeys), organization, request),
  );
}

async function removeChatNumber(pool: Pool, { organization, number }: NumberOptions): Promise<unknown> {
  return audited(pool, { organization, action: 'chatapp.numbers.delete', detail: { number } }, () =>
    removeNumberForOperator(pool, organization, number),
  );
}

async function addTemplates(pool: Pool, options: TemplateOptions): Promise<unknown> {
  const { organization, number } = options;
  const templates = templatesOf(options);
  if (templates.length === 0) throw new InvalidArgumentError('--template is missing');
  return audited(pool, { organization, action: 'chatapp.numbers.update', detail: { number } }, () =>
    addNumberTemplates(pool, organization, number, templates),
  );
}

function templatesOf({ template }: TemplateOptions): NumberTemplate[] {
  return template.length > 0 ? readTemplates(template.join('\n'), 'template') : [];
}

interface SenderOptions extends OfOrganization {
  readonly number?: string;
  readonly messagingServiceSid?: string;
}

export function addSenderCommands(program: Command): void {
  const sender = program.command('sender').description('numbers and messaging services that SMS come from');
  const onSender = (name: string, description: string) =>
    commandsOf(sender)(name, description)
      .addOption(option('--number <number>', 'phone number in E.164 form, or a short code'))
      .addOption(option('--messaging-service-sid <MG…>', 'messaging service at Twilio'));
  onSender('add', 'Connect a number or messaging service of your account at Twilio.')
    .addOption(repeatable('--country <code>', 'country of recipients that it serves, such as US; all by default'))
    .action(onDatabase(addSmsSender));
  addListOfAll(sender, 'List the senders of an organization, or of all.', async (pool, orgId) => ({
    senders: await listSendersOfAll(pool, orgId),
  }));
  onSender('remove', 'Disconnect a sender.').alias('delete').action(onDatabase(removeSmsSender));
}

async function addSmsSender(pool: Pool, options: SenderOptions & { readonly country: readonly string[] }) {
  const { organization, country } = options;
  const sender = senderOf(options);
  const countries = country.map((code) => code.toUpperCase());
  return audited(pool, { organization, action: 'sms.senders.create', detail: { sender } }, () =>
    addSender(pool, organization, sender, countries),
  );
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
