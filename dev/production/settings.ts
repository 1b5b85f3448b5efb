import { SETTINGS } from '../../src/settings.ts';
import type { Home } from '../environment/home.ts';
import type { Secrets } from '../environment/secrets.ts';
import { withoutTemporal } from '../environment/temporal.ts';

/** The addresses of a service in a benchmark or fault test, and the folder of its files if not in its home. */
interface Places {
  /** The API's URL for providers and customers. */
  readonly url: string;
  readonly smtpPort: number;
  readonly files?: string | undefined;
}

/** Returns the settings that all processes of such a service share, as in production. Ignores those of the shell. */
export function sharedSettings(home: Home, secrets: Secrets, { url, smtpPort, files }: Places): NodeJS.ProcessEnv {
  const ours = (name: string) => name in SETTINGS || name.startsWith('SIMULATOR_');
  const others = Object.entries(withoutTemporal(process.env)).filter(([name]) => !ours(name));
  return {
    ...Object.fromEntries(others),
    NODE_ENV: 'production',
    LOG_LEVEL: 'warn',
    SECRET_KEY: secrets.secret_key,
    PUBLIC_URL: url,
    ATTACHMENT_STORE: `file:${files ?? home.attachments}`,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    EMAIL_PROVIDERS: 'postmark,smtp',
    POSTMARK_SERVER_TOKEN: secrets.postmark_server_token,
    POSTMARK_WEBHOOK_USER: secrets.postmark_webhook_user,
    POSTMARK_WEBHOOK_PASSWORD: secrets.postmark_webhook_password,
    SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
  };
}
