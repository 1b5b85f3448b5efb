import type { Logger } from 'pino';
import type { EmailDeps } from '../../delivery/email/contract.ts';
import { makeLargeEmails } from '../../delivery/email/large-emails.ts';
import { makeSendingDomains } from '../../delivery/email/sending-domains.ts';
import { makeTrack } from '../../delivery/email/tracking.ts';
import { makeProviderPauses } from '../../delivery/pauses.ts';
import type { Config } from '../../config.ts';
import { type SecretKeys, secretKeysOf } from '../../lib/secret-key.ts';
import { accountLinkSeal } from '../../domain/email/account-link.ts';
import { makeUnsubscribeTokens, unsubscribeUrl } from '../../domain/email/unsubscribe-token.ts';
import { dkimSeal } from '../../sender-domains/deps.ts';
import { makeEmailContents } from '../../store/emails/contents.ts';
import type { FileStore } from '../../store/files/file-store.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import type { Tracer } from '../../telemetry/tracer.ts';
import { makeEmailProviders } from './email-providers.ts';

interface Parts extends Pick<EmailDeps, 'pool' | 'recorder' | 'line' | 'stopping' | 'log'> {
  readonly files: FileStore;
  readonly tracer?: Tracer | undefined;
}

/** The dependencies of email delivery in a worker and in its isolated process. */
export function makeEmailDeps(
  config: Config & { SECRET_KEY: string },
  { pool, recorder, line, stopping, log, files, tracer }: Parts,
): EmailDeps {
  const secretKeys = secretKeysOf(config);
  return {
    ...retrySettings(config, pool, log),
    pool,
    contents: makeEmailContents(secretKeys),
    accountLinks: accountLinkSeal(secretKeys),
    providers: makeEmailProviders(config, log, tracer),
    recorder,
    line,
    stopping,
    largeEmails: makeLargeEmails(pool, files, log),
    sendingDomains: makeSendingDomains(dkimSeal(secretKeys), log),
    unsubscribeUrl: makeUnsubscribeUrl(config, secretKeys, log),
    track: makeTrack(config.LINK_URL ?? config.PUBLIC_URL, secretKeys, log),
    log,
  };
}

/** The settings with which all channels of a worker retry and reconcile. */
export function retrySettings(config: Config, pool: Pool, log: Logger) {
  return {
    initialIntervalMs: config.SEND_INITIAL_INTERVAL,
    maxIntervalMs: config.SEND_MAX_INTERVAL,
    ambiguousSend: config.AMBIGUOUS_SEND,
    ambiguousSendMaxRepeats: config.AMBIGUOUS_SEND_MAX_REPEATS,
    confirmNotFoundAfterMs: config.CONFIRM_NOT_FOUND_AFTER,
    goneWorkerWaitMs: config.GONE_WORKER_WAIT,
    accountRetryForMs: config.ACCOUNT_RETRY_FOR,
    pauses: makeProviderPauses(pool, log),
  };
}

/** Returns the function that creates unsubscribe links. Without `PUBLIC_URL` they point to `HOST` and `PORT`. */
function makeUnsubscribeUrl(config: Config, secretKeys: SecretKeys, log: Logger): EmailDeps['unsubscribeUrl'] {
  const tokens = makeUnsubscribeTokens(secretKeys);
  const configured = config.LINK_URL ?? config.PUBLIC_URL;
  const publicUrl = configured ?? `http://${config.HOST}:${config.PORT}`;
  if (configured === undefined) {
    log.warn(`PUBLIC_URL is not set: recipients of marketing email are to unsubscribe at ${publicUrl}`);
  }
  return (orgId, emailId, position) => unsubscribeUrl(publicUrl, tokens.make({ orgId, emailId, position }));
}
