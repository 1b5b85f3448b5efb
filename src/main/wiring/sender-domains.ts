import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { Senders } from '../../domain/senders/sender-records.ts';
import { makeDns } from '../../providers/dns.ts';
import { postmarkDomains } from '../../providers/postmark/domains.ts';
import { dkimSeal, type SenderDomainDeps } from '../../sender-domains/deps.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { emailProviderNames } from './email-providers.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

export function makeSenderDomains(config: Config, pool: Pool, secretKey: SecretKeys, log: Logger): SenderDomainDeps {
  const { DNS_SERVERS, POSTMARK_ACCOUNT_TOKEN: accountToken, POSTMARK_BASE_URL: baseUrl } = config;
  const senders = sendersOf(config);
  const isManaged = senders.postmark && accountToken !== undefined;
  return {
    pool,
    seal: dkimSeal(secretKey),
    dns: makeDns(DNS_SERVERS),
    senders,
    postmark: isManaged ? postmarkDomains(accountToken, { baseUrl }) : undefined,
    log,
  };
}

/** Returns the providers through which email is sent, which determine the required DNS records. */
export function sendersOf(config: Config): Senders {
  const names = emailProviderNames(config);
  const smtpUrl = names.includes('smtp') ? config.SMTP_URL : undefined;
  return {
    postmark: names.includes('postmark') && config.POSTMARK_SERVER_TOKEN !== undefined,
    smtpHost: smtpUrl === undefined ? null : new URL(smtpUrl).hostname,
  };
}
