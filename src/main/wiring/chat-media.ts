import type { Config } from '../../config.ts';
import { ATTACHMENTS_BYTES } from '../../domain/limits.ts';
import type { HttpDeps } from '../../http/deps.ts';
import { LOOPBACK_RANGES } from '../../lib/ip-ranges.ts';
import { isPublicUrl } from '../../lib/public-url.ts';
import { secretKeysOf } from '../../lib/secret-key.ts';
import { makeSemaphore } from '../../lib/semaphore.ts';
import { chatSeal, openNumberToken } from '../../accounts/chat-numbers.ts';
import { metaMedia } from '../../providers/meta/media.ts';
import { twilioMedia } from '../../providers/twilio/media.ts';
import { makePublicFetch, openBudget } from '../../public-fetch/fetch.ts';
import { Unfetchable } from '../../public-fetch/unfetchable.ts';
import type { SendingNumber } from '../../store/messages/delivery.ts';
import { twilioAccount } from './twilio-account.ts';

/** Maximum bytes of files in memory, per process and per organization. */
const MAX_MEDIA_BYTES = 4 * ATTACHMENTS_BYTES;
const MAX_MEDIA_BYTES_PER_ORGANIZATION = 2 * ATTACHMENTS_BYTES;

/** Returns a function that fetches files of users' messages with the token of the receiving number, or that of the settings. */
export function makeFetchMedia(config: Config & { readonly SECRET_KEY: string }): HttpDeps['fetchMedia'] {
  const seal = chatSeal(secretKeysOf(config));
  const memory = makeSemaphore(MAX_MEDIA_BYTES, MAX_MEDIA_BYTES_PER_ORGANIZATION);
  const isSimulated = !isPublicUrl(config.META_BASE_URL) || !isPublicUrl(config.TWILIO_BASE_URL);
  const fetchPublic = makePublicFetch({
    allowedCidrs: [...(config.ATTACHMENT_ALLOW_CIDRS ?? []), ...(isSimulated ? LOOPBACK_RANGES : [])],
  });

  function requestOf(number: SendingNumber, reference: string) {
    const own = openNumberToken(seal, number);
    if (number.provider === 'meta') {
      const accessToken = own ?? config.META_ACCESS_TOKEN;
      return accessToken === undefined ? undefined : metaMedia(config.META_BASE_URL, accessToken, reference);
    }
    const account = twilioAccount(config, number.account_sid, own);
    return account && twilioMedia(account, reference);
  }

  return async ({ org_id: holder, number, reference }) => {
    const fetchWith = requestOf(number, reference);
    if (!fetchWith) throw new Unfetchable('there are no credentials for the provider');
    const { budget, release } = openBudget(memory, holder, ATTACHMENTS_BYTES);
    try {
      const content = await fetchWith((url, authorization) => fetchPublic(url, budget, undefined, authorization));
      return { content, release };
    } catch (error) {
      release();
      throw error;
    }
  };
}
