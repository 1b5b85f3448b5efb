import { join } from 'node:path';
import { readDevFile } from './embedded/dev-file.ts';
import { readSecrets } from './embedded/secrets.ts';
import { readSettings } from './env.ts';

/** Where webhooks are received that are being developed. */
export const LOOPBACK = '127.0.0.0/8,::1';

/**
 * What endpoints are made with: `SECRET_KEY` and `WEBHOOK_ALLOW_CIDRS`, or, where the database is that of the `npm start`
 * that runs in `SENDWRIGHT_HOME`, what that uses without them.
 */
export async function webhookSettings(): Promise<{ secretKey: string; allowedCidrs: readonly string[] }> {
  const { DATABASE_URL, SECRET_KEY, SENDWRIGHT_HOME, WEBHOOK_ALLOW_CIDRS } = readSettings();
  const dev = await readDevFile(join(SENDWRIGHT_HOME, 'dev.json'));
  if (dev && (DATABASE_URL ?? dev.database_url) === dev.database_url) {
    const { secret_key } = await readSecrets(join(SENDWRIGHT_HOME, 'secrets.json'));
    return { secretKey: SECRET_KEY ?? secret_key, allowedCidrs: WEBHOOK_ALLOW_CIDRS ?? LOOPBACK.split(',') };
  }
  return { secretKey: SECRET_KEY ?? readSettings('SECRET_KEY').SECRET_KEY, allowedCidrs: WEBHOOK_ALLOW_CIDRS ?? [] };
}
