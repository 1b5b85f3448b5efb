import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { EmailStatus } from '../../../client/index.ts';
import { Refusal } from './api.ts';
import { type ApiCommand, each, needed, optional, UsageError } from './command.ts';

/** What whoever has a key does with email. */
export const EMAILS = {
  send: {
    usage:
      '--to A… [--cc A]… [--bcc A]… [--from A] --subject S [--text T|--html H] [--tag NAME:VALUE]… [--file PATH]… [--at TIME]',
    ask: async ({ client, from }, options) => {
      const [to, cc, bcc] = ['to', 'cc', 'bcc'].map((name) => each(options, name)) as [string[], string[], string[]];
      if (to.length === 0) throw new UsageError('--to is missing');
      return client.emails.send({
        from: optional(options, 'from') ?? from ?? needed(options, 'from'),
        to: oneOrMany(to),
        cc: cc.length > 0 ? oneOrMany(cc) : undefined,
        bcc: bcc.length > 0 ? oneOrMany(bcc) : undefined,
        subject: needed(options, 'subject'),
        text: optional(options, 'text'),
        html: optional(options, 'html'),
        tags: each(options, 'tag').map(tagIn),
        attachments: await Promise.all(each(options, 'file').map(attach)),
        scheduled_at: optional(options, 'at'),
      });
    },
  },
  'emails list': {
    usage: '[--status S] [--tag NAME:VALUE]… [--limit N] [--cursor C]',
    ask: async ({ client }, options) => {
      const limit = optional(options, 'limit');
      const filters = {
        tag: each(options, 'tag'),
        // The API says which there are.
        status: optional(options, 'status') as EmailStatus | undefined,
        limit: limit === undefined ? undefined : Number(limit),
        cursor: optional(options, 'cursor'),
      };
      return client.emails.list(filters).page();
    },
  },
  'emails show': {
    usage: 'ID',
    ask: async ({ client }, _options, id) => {
      // Other words name other addresses of the API.
      if (!/^em_\w+$/.test(id)) throw new UsageError(`${id} is not the id of an email: they begin with em_`);
      return client.emails.get(id);
    },
  },
} satisfies Record<string, ApiCommand>;

/** The API names a single address without a position when it is at fault. */
function oneOrMany(addresses: readonly string[]): string | readonly string[] {
  const [first] = addresses;
  return addresses.length === 1 && first !== undefined ? first : addresses;
}

function tagIn(text: string): { name: string; value: string } {
  const colon = text.indexOf(':');
  if (colon === -1) throw new UsageError(`--tag must be NAME:VALUE, not ${text}`);
  return { name: text.slice(0, colon), value: text.slice(colon + 1) };
}

async function attach(path: string): Promise<{ filename: string; content: string }> {
  const content = await readFile(path, 'base64').catch((error: unknown) => {
    throw new Refusal(`--file ${path} cannot be read: ${(error as Error).message}`);
  });
  return { filename: basename(path), content };
}
