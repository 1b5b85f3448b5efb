import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { ChatProviderName } from '../../domain/chat/chat.ts';
import { isPublicUrl } from '../../lib/public-url.ts';
import { secretKeysOf } from '../../lib/secret-key.ts';
import { chatSeal, openNumberToken } from '../../accounts/chat-numbers.ts';
import type { ChatProvider } from '../../providers/chat-provider.ts';
import { metaProvider } from '../../providers/meta/meta.ts';
import { observeChatProvider } from '../../providers/observed.ts';
import { twilioSms } from '../../providers/twilio/sms.ts';
import { twilioProvider } from '../../providers/twilio/twilio.ts';
import type { SendingNumber } from '../../store/messages/delivery.ts';
import { findContent } from '../../store/chat/contents.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import type { Tracer } from '../../telemetry/tracer.ts';
import { twilioAccount } from './twilio-account.ts';
import { makeContents } from './twilio-contents.ts';

const MAX_CACHED_PROVIDERS = 1_000;

/**
 * Returns the provider of a number with the number's own credentials or those of the settings. A call without credentials
 * returns an outcome that keeps messages pending until an operator adds them.
 */
export function makeChatProviders(
  pool: Pool,
  config: Config & { readonly SECRET_KEY: string },
  log: Logger,
  tracer?: Tracer,
): (number: SendingNumber) => ChatProvider {
  const seal = chatSeal(secretKeysOf(config));
  const contents = makeContents(pool, log);
  const callbacksUrl = twilioCallbacksUrl(config);
  const cache = new LRUCache<string, ChatProvider>({ max: MAX_CACHED_PROVIDERS });

  function make(number: SendingNumber): ChatProvider {
    let own: string | undefined;
    try {
      own = openNumberToken(seal, number);
    } catch {
      return makeUnconfiguredProvider(
        number.provider,
        'The token of this number cannot be opened: it was sealed with another SECRET_KEY.',
      );
    }
    if (number.channel === 'sms') return makeSms();
    return number.provider === 'twilio' ? makeTwilio(number, own) : makeMeta(number, own);
  }

  function makeTwilio(number: SendingNumber, own: string | undefined): ChatProvider {
    const account = twilioAccount(config, number.account_sid, own);
    if (!account) {
      return makeUnconfiguredProvider(
        'twilio',
        'There are no credentials for Twilio: this number has none, nor have the settings.',
      );
    }
    // Contents of a shared account may belong to other organizations, so only those assigned by the operator are used.
    const isShared = account.accountSid === config.TWILIO_ACCOUNT_SID;
    const contentOf = (name: string, language: string) =>
      isShared ? findContent(pool, number.id, name, language) : contents(number.id, account, name, language);
    return twilioProvider({ ...account, publicUrl: callbacksUrl ?? null, contentOf });
  }

  function makeSms(): ChatProvider {
    const account = twilioAccount(config);
    if (!account) return makeUnconfiguredProvider('twilio', 'There are no credentials for Twilio in the settings.');
    return twilioSms({ ...account, publicUrl: callbacksUrl ?? null });
  }

  function makeMeta({ phone_number_id: phoneNumberId }: SendingNumber, own: string | undefined): ChatProvider {
    const accessToken = own ?? config.META_ACCESS_TOKEN;
    if (phoneNumberId === null || accessToken === undefined) {
      return makeUnconfiguredProvider(
        'meta',
        'There is no access token for Meta: this number has none, nor have the settings.',
      );
    }
    return metaProvider({ phoneNumberId, accessToken, baseUrl: config.META_BASE_URL });
  }

  return (number) => {
    const { id, phone_number_id, account_sid, credentials } = number;
    const key = [id, phone_number_id, account_sid, credentials?.toString('base64')].join(' ');
    const provider = cache.get(key) ?? observeChatProvider(make(number), tracer);
    cache.set(key, provider);
    return provider;
  };
}

/**
 * Returns the URL to which Twilio can report statuses; undefined if statuses must be polled. Twilio refuses a message whose
 * `statusCallback` it cannot reach (error 21609). A server in our own network, such as the simulator, can reach any URL.
 */
export function twilioCallbacksUrl(config: Pick<Config, 'PUBLIC_URL' | 'TWILIO_BASE_URL'>): string | undefined {
  const { PUBLIC_URL: url, TWILIO_BASE_URL: twilioUrl } = config;
  if (url === undefined) return undefined;
  return isPublicUrl(url) || !isPublicUrl(twilioUrl) ? url : undefined;
}

/** Returns a provider that has no credentials. */
function makeUnconfiguredProvider(name: ChatProviderName, detail: string): ChatProvider {
  return {
    name,
    refusal: () => undefined,
    send: () => Promise.resolve({ kind: 'account', detail }),
  };
}
