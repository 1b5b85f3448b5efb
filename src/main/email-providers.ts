import type { EmailProviderName } from '../domain/email.ts';
import type { EmailProvider } from '../providers/email-provider.ts';
import { postmark } from '../providers/postmark.ts';
import { smtp } from '../providers/smtp.ts';
import { readSettings } from './env.ts';

/** The email providers of `EMAIL_PROVIDERS`, else those that have credentials; one at least. */
export function makeEmailProviders(): EmailProvider[] {
  const config = readSettings();
  const given: EmailProviderName[] = [];
  if (config.POSTMARK_SERVER_TOKEN !== undefined) given.push('postmark');
  if (config.SMTP_URL !== undefined) given.push('smtp');
  const names = config.EMAIL_PROVIDERS ?? (given.length > 0 ? given : (['postmark'] as const));
  return names.map((name) => MAKERS[name]());
}

const MAKERS: Readonly<Record<EmailProviderName, () => EmailProvider>> = {
  postmark: () => {
    const config = readSettings('POSTMARK_SERVER_TOKEN');
    return postmark({
      serverToken: config.POSTMARK_SERVER_TOKEN,
      baseUrl: config.POSTMARK_BASE_URL,
      messageStream: config.POSTMARK_MESSAGE_STREAM,
    });
  },
  smtp: () => smtp(readSettings('SMTP_URL').SMTP_URL),
};
