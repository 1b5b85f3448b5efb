import { randomBytes, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { writeJson } from './atomic-file.ts';
import { Problem } from './problem.ts';

/** Generated at the first start of a home. */
export interface Secrets {
  readonly database_password: string;
  readonly secret_key: string;
  readonly postmark_server_token: string;
  readonly postmark_account_token: string;
  readonly postmark_webhook_user: string;
  readonly postmark_webhook_password: string;
  readonly twilio_account_sid: string;
  readonly twilio_auth_token: string;
  readonly meta_access_token: string;
  readonly meta_app_secret: string;
  readonly meta_verify_token: string;
  /** Absent before the first demonstration email. */
  readonly demo?: DemoSecrets;
}

export interface DemoSecrets {
  readonly organization_id: string;
  readonly api_key: string;
  readonly domain: string;
  /** Absent in a home that was created before the dashboard existed. */
  readonly dashboard?: { readonly email: string; readonly password: string };
}

export type Demo = Required<DemoSecrets>;

/** Reads the secrets of a home, and adds those that a newer version requires. */
export async function readSecrets(path: string): Promise<Secrets> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '{}';
    throw error;
  });
  const kept = parse(path, text);
  const secrets: Secrets = { ...generateSecrets(), ...kept };
  if (Object.keys(secrets).length > Object.keys(kept).length) await writeSecrets(path, secrets);
  return secrets;
}

export async function writeSecrets(path: string, secrets: Secrets): Promise<void> {
  await writeJson(path, secrets);
}

function parse(path: string, text: string): Partial<Secrets> {
  try {
    return JSON.parse(text) as Partial<Secrets>;
  } catch (error) {
    throw new Problem(`${path} is no longer valid JSON: mend it, or move its folder away to begin with an empty one`, {
      cause: error,
    });
  }
}

function generateSecrets(): Omit<Secrets, 'demo'> {
  // URL-safe, since the password is part of the database URL.
  const text = () => randomBytes(24).toString('base64url');
  return {
    database_password: text(),
    secret_key: text(),
    postmark_server_token: randomUUID(),
    postmark_account_token: randomUUID(),
    postmark_webhook_user: 'postmark',
    postmark_webhook_password: text(),
    twilio_account_sid: `AC${randomBytes(16).toString('hex')}`,
    twilio_auth_token: randomBytes(16).toString('hex'),
    meta_access_token: text(),
    meta_app_secret: randomBytes(16).toString('hex'),
    meta_verify_token: text(),
  };
}
