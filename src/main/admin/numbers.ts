import { type Command, InvalidArgumentError } from 'commander';
import { CHAT_PROVIDERS } from '../../domain/chat/chat.ts';
import { readTemplates } from '../../dashboard/templates.ts';
import { addNumber, addNumberTemplates, chatSeal, removeNumberByName } from '../../accounts/chat-numbers.ts';
import { listNumbersOfAll, type NumberTemplate } from '../../store/chat/numbers.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { webhookSettings } from '../wiring/webhook-settings.ts';
import { audited } from './audit.ts';
import { onDatabase, option, organizationOption, repeatable, required } from './command.ts';

interface NumberOptions {
  readonly organization: string;
  readonly number: string;
}

interface TemplateOptions extends NumberOptions {
  readonly template: readonly string[];
}

interface AddOptions extends TemplateOptions {
  readonly provider: (typeof CHAT_PROVIDERS)[number];
  readonly phoneNumberId?: string;
  readonly token?: string;
}

/** Adds the commands about numbers that chat-app messages come from. */
export function addNumberCommands(program: Command): void {
  const number = program.command('number').description('numbers that chat-app messages come from');
  const onNumber = (command: Command, description: string) =>
    command
      .description(description)
      .addOption(organizationOption())
      .addOption(required('--number <number>', 'phone number in E.164 form, such as +12025550144'));
  const templateOption = () =>
    repeatable('--template <name,language,HX…[,variable]…>', 'a template, with the id of its content at Twilio');
  onNumber(number.command('add'), 'Connect a number without asking its owner for a proof.')
    .addOption(required('--provider <provider>', 'provider of the number').choices(CHAT_PROVIDERS))
    .addOption(option('--phone-number-id <id>', "Meta's id of the number"))
    .addOption(option('--token <token>', 'token of an account of its own; without it your account sends'))
    .addOption(templateOption())
    .action(onDatabase(addChatNumber));
  number
    .command('list')
    .description('List the numbers of an organization, or of all.')
    .addOption(option('--organization <id>', 'id of the organization, all by default'))
    .action(onDatabase(listNumbers));
  onNumber(number.command('remove'), 'Disconnect a number.').alias('delete').action(onDatabase(removeChatNumber));
  const template = program.command('template').description('templates of chat-app messages');
  onNumber(template.command('add'), 'State which contents at Twilio the templates of a number are.')
    .addOption(templateOption())
    .action(onDatabase(addTemplates));
}

async function addChatNumber(pool: Pool, options: AddOptions): Promise<unknown> {
  const { organization, number, provider, phoneNumberId = null, token = null } = options;
  const { secretKey } = await webhookSettings();
  const templates = provider === 'twilio' ? templatesOf(options) : [];
  const request = { number, provider, phone_number_id: phoneNumberId, token, templates };
  return audited(pool, { organization, action: 'chatapp.numbers.create' }, () =>
    addNumber(pool, chatSeal(secretKey), organization, request),
  );
}

/** `verified_by` is null for unconfirmed numbers, and "operator" or "provider" for others. */
async function listNumbers(pool: Pool, { organization }: { organization?: string }): Promise<unknown> {
  return { numbers: await listNumbersOfAll(pool, organization ?? null) };
}

async function removeChatNumber(pool: Pool, { organization, number }: NumberOptions): Promise<unknown> {
  return audited(pool, { organization, action: 'chatapp.numbers.delete', detail: { number } }, () =>
    removeNumberByName(pool, organization, number),
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
