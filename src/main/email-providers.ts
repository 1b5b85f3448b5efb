import type { Config } from '../config.ts';
import type { EmailProviderName } from '../domain/email.ts';
import { makeMetadataSigner } from '../domain/metadata-signature.ts';
import type { EmailProvider } from '../providers/email-provider.ts';
import { observedEmail } from '../providers/observed.ts';
import { postmark, type PostmarkSettings } from '../providers/postmark.ts';
import { postmarkSuppressions } from '../providers/postmark-suppressions.ts';
import { smtp } from '../providers/smtp.ts';
import type { Tracer } from '../telemetry/tracer.ts';
import { readSettings } from './env.ts';

/** The email providers of `EMAIL_PROVIDERS`, else those that have credentials; one at least. */
export function makeEmailProviders(tracer?: Tracer): EmailProvider[] {
  return emailProviderNames(readSettings()).map((name) => observedEmail(MAKERS[name](), tracer));
}

/** The names of those, whether they have what they need or not. */
export function emailProviderNames(config: Config): readonly EmailProviderName[] {
  const given: EmailProviderName[] = [];
  if (config.POSTMARK_SERVER_TOKEN !== undefined) given.push('postmark');
  if (config.SMTP_URL !== undefined) given.push('smtp');
  return config.EMAIL_PROVIDERS ?? (given.length > 0 ? given : ['postmark']);
}

/** Asks Postmark about messages that it took, also where new email goes out by others; undefined without its token. */
export function makeAskPostmark(): EmailProvider['reports'] | undefined {
  return readSettings().POSTMARK_SERVER_TOKEN === undefined ? undefined : observedEmail(MAKERS.postmark()).reports;
}

/** Takes an address off Postmark's own list, also where new email goes out by others; undefined without its token. */
export function makeRemoveFromProvider(): ((address: string) => Promise<boolean>) | undefined {
  if (readSettings().POSTMARK_SERVER_TOKEN === undefined) return undefined;
  const settings = postmarkSettings();
  const lists = postmarkSuppressions(settings, [settings.messageStream]);
  return (address) => lists.removeSuppression(address);
}

function postmarkSettings(): PostmarkSettings {
  const config = readSettings('POSTMARK_SERVER_TOKEN');
  return {
    serverToken: config.POSTMARK_SERVER_TOKEN,
    baseUrl: config.POSTMARK_BASE_URL,
    messageStream: config.POSTMARK_MESSAGE_STREAM,
    signEmailId: config.SECRET_KEY === undefined ? undefined : makeMetadataSigner(config.SECRET_KEY).sign,
  };
}

const MAKERS: Readonly<Record<EmailProviderName, () => EmailProvider>> = {
  postmark: () => postmark(postmarkSettings()),
  smtp: () => smtp(readSettings('SMTP_URL').SMTP_URL),
};
