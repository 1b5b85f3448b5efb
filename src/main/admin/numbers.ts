import { CHAT_PROVIDERS } from '../../domain/chat.ts';
import { readTemplates } from '../../dashboard/templates.ts';
import { addNumber, addNumberTemplates, chatSeal, removeNumberByName } from '../../intake/chat-numbers.ts';
import { listNumbersOfAll, type NumberTemplate } from '../../store/chat-numbers.ts';
import type { Pool } from '../../store/pool.ts';
import { endWith } from '../process.ts';
import { webhookSettings } from '../webhook-settings.ts';
import { audited } from './audit.ts';
import { type DatabaseCommand, needed, optional, type Options, UsageError } from './command.ts';

/** Numbers that chat-app messages come from. */
export const NUMBERS = {
  'number add': {
    usage: `--organization O --number +… --provider ${CHAT_PROVIDERS.join('|')} [--phone-number-id …] [--token …] [--template NAME,LANGUAGE,HX…[,VARIABLE]…]…`,
    run: addChatNumber,
  },
  'template add': {
    usage: '--organization O --number +… --template NAME,LANGUAGE,HX…[,VARIABLE]…',
    run: addTemplates,
  },
  'number list': { usage: '[--organization O]', run: listNumbers },
  'number remove': { usage: '--organization O --number +…', run: removeChatNumber },
} satisfies Record<string, DatabaseCommand>;

async function addChatNumber(pool: Pool, options: Options): Promise<unknown> {
  const [organization, number] = [needed(options, 'organization'), needed(options, 'number')];
  const given = needed(options, 'provider');
  const names = CHAT_PROVIDERS.join(' or ');
  const provider = CHAT_PROVIDERS.find((name) => name === given) ?? endWith(`--provider must be ${names}`);
  const phone_number_id = optional(options, 'phone-number-id') ?? null;
  const token = optional(options, 'token') ?? null;
  const { secretKey } = await webhookSettings();
  const templates = provider === 'twilio' ? templatesOf(options) : [];
  return audited(pool, { organization, action: 'chatapp.numbers.create' }, () =>
    addNumber(pool, chatSeal(secretKey), organization, { number, provider, phone_number_id, token, templates }),
  );
}

/** `verified_by` is null for numbers that nobody confirmed, and "operator" or "provider" for the others. */
async function listNumbers(pool: Pool, options: Options): Promise<unknown> {
  return { numbers: await listNumbersOfAll(pool, optional(options, 'organization') ?? null) };
}

async function removeChatNumber(pool: Pool, options: Options): Promise<unknown> {
  const [organization, number] = [needed(options, 'organization'), needed(options, 'number')];
  return audited(pool, { organization, action: 'chatapp.numbers.delete', detail: { number } }, () =>
    removeNumberByName(pool, organization, number),
  );
}

/** Which contents of the operator's Twilio account the templates of a number are; without this the number has none. */
async function addTemplates(pool: Pool, options: Options): Promise<unknown> {
  const [organization, number] = [needed(options, 'organization'), needed(options, 'number')];
  const templates = templatesOf(options);
  if (templates.length === 0) throw new UsageError('--template is missing');
  return audited(pool, { organization, action: 'chatapp.numbers.update', detail: { number } }, () =>
    addNumberTemplates(pool, organization, number, templates),
  );
}

function templatesOf(options: Options): NumberTemplate[] {
  const lines = options['template'];
  return Array.isArray(lines) ? readTemplates(lines.join('\n'), 'template') : [];
}
