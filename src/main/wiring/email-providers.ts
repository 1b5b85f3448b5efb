import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { EmailProviderName } from '../../domain/email/email.ts';
import { makeMetadataSigner } from '../../domain/email/metadata-signature.ts';
import type { EmailProvider } from '../../providers/email-provider.ts';
import { observedEmail } from '../../providers/observed.ts';
import { postmark, type PostmarkSettings } from '../../providers/postmark/postmark.ts';
import { postmarkSuppressions } from '../../providers/postmark/suppressions.ts';
import { smtp } from '../../providers/smtp/smtp.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { closePausesOfReason, openPauses } from '../../store/upkeep/provider-pauses.ts';
import type { Tracer } from '../../telemetry/tracer.ts';

/**
 * The email providers of `EMAIL_PROVIDERS`, else those that have credentials; one at least. Logs an error for each without
 * credentials: its emails wait.
 */
export function makeEmailProviders(config: Config, log: Pick<Logger, 'error'>, tracer?: Tracer): EmailProvider[] {
  return emailProviderNames(config).map((name) => {
    const provider = makeProvider(config, name);
    if (provider) return observedEmail(provider, tracer);
    const detail = missingCredentials(config, name);
    log.error({ provider: name, set: settingsToSet(config, name) }, 'email provider without credentials: email waits');
    return observedEmail(unready(name, detail), tracer);
  });
}

/**
 * Pauses email providers without credentials at startup, so that `/metrics` shows them before the first email fails to
 * leave. Ends the pauses of providers that have credentials now: their email does not wait for the next probe.
 */
export async function updateCredentialPauses(config: Config, pool: Pool, log: Pick<Logger, 'warn'>): Promise<void> {
  const names = emailProviderNames(config);
  const ready = names.filter((name) => config[CREDENTIALS[name]] !== undefined);
  const missing = names.filter((name) => !ready.includes(name));
  try {
    await closePausesOfReason(pool, ready, CREDENTIALS_MISSING);
    const pauses = missing.map((name) => ({ provider: name, sender: '', reason: missingCredentials(config, name) }));
    await openPauses(pool, pauses);
  } catch (error) {
    log.warn({ err: error }, 'pauses of email providers could not be updated at startup');
  }
}

/** Returns their names, also of those without credentials. */
export function emailProviderNames(config: Config): readonly EmailProviderName[] {
  const given: EmailProviderName[] = [];
  if (config.POSTMARK_SERVER_TOKEN !== undefined) given.push('postmark');
  if (config.SMTP_URL !== undefined) given.push('smtp');
  return config.EMAIL_PROVIDERS ?? (given.length > 0 ? given : ['postmark']);
}

/** Fetches Postmark's reports, also if new email is sent by another provider; undefined without its token. */
export function makeAskPostmark(config: Config): EmailProvider['reports'] | undefined {
  const provider = makeProvider(config, 'postmark');
  return provider && observedEmail(provider).reports;
}

/** Removes addresses from Postmark's list, also if new email is sent by another provider; undefined without its token. */
export function makeRemoveFromProvider(config: Config): ((address: string) => Promise<boolean>) | undefined {
  const settings = postmarkSettings(config);
  return settings && postmarkSuppressions(settings).removeSuppression;
}

/** Undefined without credentials. */
function makeProvider(config: Config, name: EmailProviderName): EmailProvider | undefined {
  if (name === 'smtp') return config.SMTP_URL === undefined ? undefined : smtp(config.SMTP_URL);
  const settings = postmarkSettings(config);
  return settings && postmark(settings);
}

function postmarkSettings(config: Config): PostmarkSettings | undefined {
  if (config.POSTMARK_SERVER_TOKEN === undefined) return undefined;
  return {
    serverToken: config.POSTMARK_SERVER_TOKEN,
    baseUrl: config.POSTMARK_BASE_URL,
    messageStream: config.POSTMARK_MESSAGE_STREAM,
    broadcastStream: config.POSTMARK_BROADCAST_STREAM,
    signEmailId: config.SECRET_KEY === undefined ? undefined : makeMetadataSigner(config.SECRET_KEY).sign,
  };
}

/** The start of the reason of pauses because of missing credentials. */
const CREDENTIALS_MISSING = 'There are no credentials for this provider.';

/** The setting without which a provider cannot be called. */
const CREDENTIALS = { postmark: 'POSTMARK_SERVER_TOKEN', smtp: 'SMTP_URL' } as const;

/**
 * The settings of which one has to be set before email is sent, each with the file that may hold it. Without
 * `EMAIL_PROVIDERS` the credentials of any provider do.
 */
function settingsToSet(config: Config, name: EmailProviderName): string[] {
  const settings = config.EMAIL_PROVIDERS ? [CREDENTIALS[name]] : Object.values(CREDENTIALS);
  return settings.map((setting) => {
    const file = process.env[`${setting}_FILE`];
    return file ? `${setting} (file ${file})` : setting;
  });
}

function missingCredentials(config: Config, name: EmailProviderName): string {
  return `${CREDENTIALS_MISSING} Set ${settingsToSet(config, name).join(' or ')}, then restart the email workers.`;
}

/**
 * A provider without credentials. Its emails wait like those of a refused account, or are sent by another provider. A worker
 * that ended at startup would not do its other work.
 */
function unready(name: EmailProviderName, detail: string): EmailProvider {
  return {
    name,
    callSize: 500,
    overlap: 0,
    // It sends nothing, so that nothing has to be rewritten for it.
    hasTracking: true,
    refusal: () => undefined,
    send: (emails) => Promise.resolve(emails.map(() => ({ kind: 'account', detail }))),
  };
}
