import { CHAT_PROVIDERS } from '../../domain/chat.ts';
import { addNumber, chatSeal } from '../../intake/chat-numbers.ts';
import type { Pool } from '../../store/pool.ts';
import { endWith } from '../process.ts';
import { webhookSettings } from '../webhook-settings.ts';
import { type DatabaseCommand, needed, optional, type Options } from './command.ts';

/** Numbers that chat-app messages come from. */
export const NUMBERS = {
  'number add': {
    usage: `--organization O --number +… --provider ${CHAT_PROVIDERS.join('|')} [--phone-number-id …] [--token …]`,
    run: addChatNumber,
  },
} satisfies Record<string, DatabaseCommand>;

async function addChatNumber(pool: Pool, options: Options): Promise<unknown> {
  const [organization, number] = [needed(options, 'organization'), needed(options, 'number')];
  const given = needed(options, 'provider');
  const names = CHAT_PROVIDERS.join(' or ');
  const provider = CHAT_PROVIDERS.find((name) => name === given) ?? endWith(`--provider must be ${names}`);
  const phone_number_id = optional(options, 'phone-number-id') ?? null;
  const token = optional(options, 'token') ?? null;
  const { secretKey } = await webhookSettings();
  return addNumber(pool, chatSeal(secretKey), organization, { number, provider, phone_number_id, token });
}
