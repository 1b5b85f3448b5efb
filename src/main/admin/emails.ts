import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { type Command, InvalidArgumentError } from 'commander';
import type { BounceReason, EmailStatus } from '../../../client/index.ts';
import { type Api, Refusal } from './api.ts';
import { matchingText, onApi, option, repeatable, required } from './command.ts';
import { addRetryCommand } from './retry.ts';

interface SendOptions {
  readonly to: readonly string[];
  readonly cc: readonly string[];
  readonly bcc: readonly string[];
  readonly from?: string;
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  readonly tag: readonly string[];
  readonly file: readonly string[];
  readonly at?: string;
}

interface ListOptions {
  readonly to?: string;
  readonly from?: string;
  readonly subject?: string;
  readonly createdAfter?: string;
  readonly createdBefore?: string;
  readonly status: readonly EmailStatus[];
  readonly bounceReason?: BounceReason;
  readonly tag: readonly string[];
  readonly batchId?: string;
  readonly limit?: string;
  readonly cursor?: string;
}

export function addEmailCommands(program: Command): void {
  const tagOption = (description: string) =>
    repeatable('--tag <name:value>', description, matchingText(/:/, 'a name and a value with a colon between them'));
  program
    .command('send')
    .description('Send one email, and print its id and status.')
    .addOption(repeatable('--to <address>', 'recipient').default(undefined).makeOptionMandatory())
    .addOption(repeatable('--cc <address>', 'recipient of a copy'))
    .addOption(repeatable('--bcc <address>', 'recipient of a hidden copy'))
    .addOption(option('--from <address>', 'sender; by default the address of the npm start that runs here'))
    .addOption(required('--subject <subject>', 'subject'))
    .addOption(option('--text <text>', 'plain text, or - to read it from standard input'))
    .addOption(option('--html <html>', 'HTML, or - to read it from standard input'))
    .addOption(tagOption('tag of the email'))
    .addOption(repeatable('--file <path>', 'file to attach'))
    .addOption(option('--at <time>', 'when to send it, such as 2026-03-02T08:00:00Z; immediately by default'))
    .action(onApi(send));

  const emails = program.command('emails').description('emails that were accepted');
  emails
    .command('list')
    .description('List a page of the emails of the organization, latest first.')
    .addOption(option('--to <address>', 'only emails with this recipient; @example.com for all of a domain'))
    .addOption(option('--from <address>', 'only emails from this sender; @example.com for all of a domain'))
    .addOption(option('--subject <words>', 'only emails with all of these words in the subject'))
    .addOption(option('--created-after <time>', 'only emails accepted then or later, such as 2026-03-02T08:00:00Z'))
    .addOption(option('--created-before <time>', 'only emails accepted before then'))
    .addOption(repeatable('--status <status>', 'only emails in one of these statuses'))
    .addOption(option('--bounce-reason <reason>', 'only emails that bounced for this reason'))
    .addOption(tagOption('only emails with all of these tags'))
    .addOption(option('--batch-id <id>', 'only emails of this batch'))
    .addOption(option('--limit <n>', 'emails per page').argParser(matchingText(/^\d{1,6}$/, 'a whole number')))
    .addOption(option('--cursor <cursor>', 'next_cursor of the page before'))
    .action(onApi(list));
  emails
    .command('show')
    .description('Show an email with its timeline.')
    .argument('<id>', 'id of the email', emailId)
    .action(onApi(({ client }, id: string) => client.emails.get(id)));
  emails
    .command('cancel')
    .description('Cancel a scheduled email.')
    .argument('<id>', 'id of the email', emailId)
    .action(onApi(({ client }, id: string) => client.emails.cancel(id)));
  addRetryCommand(emails);
}

async function send({ client, from }: Api, options: SendOptions): Promise<unknown> {
  const { to, cc, bcc, subject, text, html, tag, file, at } = options;
  const sender = options.from ?? from;
  if (sender === undefined) throw new InvalidArgumentError("required option '--from <address>' not specified");
  if (text === '-' && html === '-')
    throw new InvalidArgumentError('only one of --text and --html can be read from standard input');
  return client.emails.send({
    from: sender,
    to: oneOrMany(to),
    cc: cc.length > 0 ? oneOrMany(cc) : undefined,
    bcc: bcc.length > 0 ? oneOrMany(bcc) : undefined,
    subject,
    text: text === '-' ? await readText(process.stdin) : text,
    html: html === '-' ? await readText(process.stdin) : html,
    tags: tag.map(toTag),
    attachments: await Promise.all(file.map(attach)),
    scheduled_at: at,
  });
}

async function list({ client }: Api, options: ListOptions): Promise<unknown> {
  const { createdAfter, createdBefore, bounceReason, batchId, limit, ...filters } = options;
  const query = {
    ...filters,
    created_after: createdAfter,
    created_before: createdBefore,
    bounce_reason: bounceReason,
    batch_id: batchId,
    limit: limit === undefined ? undefined : Number(limit),
  };
  return client.emails.list(query).page();
}

/** Validates the id: other text could address another route of the API. */
function emailId(id: string): string {
  if (/^em_\w+$/.test(id)) return id;
  throw new InvalidArgumentError('Ids of emails begin with em_.');
}

/** Returns a single address as text, for which the API reports errors without a position. */
function oneOrMany(addresses: readonly string[]): string | readonly string[] {
  const [first] = addresses;
  return addresses.length === 1 && first !== undefined ? first : addresses;
}

function toTag(text: string): { name: string; value: string } {
  const colon = text.indexOf(':');
  return { name: text.slice(0, colon), value: text.slice(colon + 1) };
}

async function attach(path: string): Promise<{ filename: string; content: string }> {
  const content = await readFile(path, 'base64').catch((error: unknown) => {
    throw new Refusal(`--file ${path} cannot be read: ${(error as Error).message}`);
  });
  return { filename: basename(path), content };
}
