import { join } from 'node:path';
import { readDevFile, readGeneratedSecretKey } from '../dev-file.ts';
import { readSettings } from '../env.ts';
import { secretKeysOf, type SecretKeys } from '../../lib/secret-key.ts';

/** The addresses of webhook receivers during development. */
export const LOOPBACK = '127.0.0.0/8,::1';

/**
 * Returns the settings for endpoints: `SECRET_KEY` and `WEBHOOK_ALLOW_CIDRS`, or the defaults of the `npm start` in
 * `SENDWRIGHT_HOME` if the database belongs to it.
 */
export async function webhookSettings(): Promise<{ secretKey: SecretKeys; allowedCidrs: readonly string[] }> {
  const { DATABASE_URL, SENDWRIGHT_HOME, WEBHOOK_ALLOW_CIDRS, ...settings } = readSettings();
  const dev = await readDevFile(join(SENDWRIGHT_HOME, 'dev.json'));
  if (dev && (DATABASE_URL ?? dev.database_url) === dev.database_url) {
    const SECRET_KEY = settings.SECRET_KEY ?? (await readGeneratedSecretKey(SENDWRIGHT_HOME));
    const secretKey = secretKeysOf({ ...settings, SECRET_KEY });
    return { secretKey, allowedCidrs: WEBHOOK_ALLOW_CIDRS ?? LOOPBACK.split(',') };
  }
  return { secretKey: secretKeysOf(readSettings('SECRET_KEY')), allowedCidrs: WEBHOOK_ALLOW_CIDRS ?? [] };
}
