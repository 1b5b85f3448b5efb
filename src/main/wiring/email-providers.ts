import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { EmailProviderName } from '../../domain/email/email.ts';
import { makeMetadataSigner } from '../../domain/email/metadata-signature.ts';
import type { EmailProvider } from '../../providers/email-provider.ts';
import { observeEmailProvider } from '../../providers/observed.ts';
import { postmark, type PostmarkSettings } from '../../providers/postmark/postmark.ts';
import { postmarkSuppressions } from '../../providers/postmark/suppressions.ts';
import { smtp } from '../../providers/smtp/smtp.ts';
import type { LookUp } from '../../store/emails/stuck.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { closePausesOfReason, openPauses } from '../../store/upkeep/provider-pauses.ts';
import type { Tracer } from '../../telemetry/tracer.ts';

/**
 * Returns the email providers of `EMAIL_PROVIDERS`, otherwise those with credentials; at least one. Logs an error for each
 * provider without credentials; its emails stay pending.
 */
export function makeEmailProviders(config: Config, log: Pick<Logger, 'error'>, tracer?: Tracer): EmailProvider[] {
  return emailProviderNames(config).map((name) => {
    const provider = makeProvider(config, name);
    if (provider) return observeEmailProvider(provider, tracer);
    const detail = missingCredentials(config, name);
    log.error({ provider: name, set: settingsToSet(config, name) }, 'email provider without credentials: email waits');
    return observeEmailProvider(makeUnconfiguredProvider(name, detail), tracer);
  });
}

/**
 * Pauses email providers without credentials at startup, so that `/metrics` shows them before the first email fails. Ends the
 * pauses of providers that have credentials now, so that their email does not wait for the next probe.
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

/** Returns the names of the email providers, including those without credentials. */
export function emailProviderNames(config: Config): readonly EmailProviderName[] {
  const configured: EmailProviderName[] = [];
  if (config.POSTMARK_SERVER_TOKEN !== undefined) configured.push('postmark');
  if (config.SMTP_URL !== undefined) configured.push('smtp');
  return config.EMAIL_PROVIDERS ?? (configured.length > 0 ? configured : ['postmark']);
}

/** Returns the provider of emails that may have been sent without an attempt on record: one that can be asked, if there is any. */
export function lookUpOf(config: Config): LookUp {
  const names = emailProviderNames(config);
  const canBeAsked = names.includes('postmark');
  return { provider: canBeAsked ? 'postmark' : (names[0] ?? 'postmark'), canBeAsked };
}

/**
 * Returns the function that fetches Postmark's reports, also if another provider sends new email; undefined without
 * Postmark's token.
 */
export function makeAskPostmark(config: Config): EmailProvider['reports'] | undefined {
  const provider = makeProvider(config, 'postmark');
  return provider && observeEmailProvider(provider).reports;
}

/**
 * Returns the function that removes addresses from Postmark's suppression list, also if another provider sends new email;
 * undefined without Postmark's token.
 */
export function makeRemoveFromProvider(config: Config): ((address: string) => Promise<boolean>) | undefined {
  const settings = postmarkSettings(config);
  return settings && postmarkSuppressions(settings).removeSuppression;
}

/** Returns undefined without credentials. */
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

/** The beginning of the reason of a pause for missing credentials. */
const CREDENTIALS_MISSING = 'There are no credentials for this provider.';

/** The setting that a provider requires. */
const CREDENTIALS = { postmark: 'POSTMARK_SERVER_TOKEN', smtp: 'SMTP_URL' } as const;

/**
 * Returns the settings of which one must be set before email can be sent, each with the file that `…_FILE` names. Without
 * `EMAIL_PROVIDERS`, the credentials of any provider suffice.
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
 * Returns a provider without credentials. Its emails stay pending like those of a refused account, or another provider sends
 * them. The worker does not end at startup, so that it does its other work.
 */
function makeUnconfiguredProvider(name: EmailProviderName, detail: string): EmailProvider {
  return {
    name,
    callSize: 500,
    overlap: 0,
    // It sends nothing, so no links need to be rewritten for it.
    hasTracking: true,
    refusal: () => undefined,
    send: (emails) => Promise.resolve(emails.map(() => ({ kind: 'account', detail }))),
  };
}
