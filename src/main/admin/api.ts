import { join } from 'node:path';
import { Sendwright, SendwrightError } from '../../../client/index.ts';
import { parseApiKey } from '../../accounts/keys.ts';
import { type DevFile, readDevFile } from '../dev-file.ts';
import { readSettings } from '../env.ts';

/** The public API, with the permissions of one key. */
export type Api = Awaited<ReturnType<typeof findApi>>;

/** A command that failed for a known reason; the message is for the user. */
export class Refusal extends Error {}

/** Timeout of one attempt. It is generous, because a service that is starting or stopping responds late. */
const TIMEOUT_MS = 30_000;
/** Kept small, since a user is waiting. */
const RETRIES = 1;

/**
 * Finds the API and key: from `SENDWRIGHT_URL` and `SENDWRIGHT_API_KEY`, otherwise those of the `npm start` in
 * `SENDWRIGHT_HOME`. Without them it ends the process with an error message. Never sends the key of one service to another.
 */
export async function findApi() {
  // Read before `.env` and the `…_FILE` variables are loaded.
  const isInEnvironment = Boolean(process.env['SENDWRIGHT_API_KEY']);
  const { SENDWRIGHT_URL, SENDWRIGHT_API_KEY, SENDWRIGHT_HOME } = readSettings();
  const devPath = join(SENDWRIGHT_HOME, 'dev.json');
  const dev: Partial<DevFile> = (await readDevFile(devPath)) ?? {};
  const url = SENDWRIGHT_URL ?? dev.base_url ?? readSettings('SENDWRIGHT_URL').SENDWRIGHT_URL;
  const isOurs = url === dev.base_url;
  const apiKey =
    SENDWRIGHT_API_KEY ?? (isOurs ? dev.api_key : undefined) ?? readSettings('SENDWRIGHT_API_KEY').SENDWRIGHT_API_KEY;
  // The sender address of `npm start`.
  const from = isOurs && apiKey === dev.api_key ? dev.from : undefined;
  const origin = SENDWRIGHT_API_KEY === undefined ? devPath : originOfSetting(isInEnvironment);
  // The origin of the key for error messages, without the secret.
  const keyOrigin = `${parseApiKey(apiKey)?.id ?? 'a malformed key (not sw_live_…)'} from ${origin}`;
  try {
    const client = new Sendwright({ baseUrl: url, apiKey, timeout: TIMEOUT_MS, retries: RETRIES });
    return { url, from, keyOrigin, client };
  } catch (error) {
    throw new Refusal(`${(error as Error).message} (SENDWRIGHT_URL ${url}; key ${keyOrigin})`);
  }
}

function originOfSetting(isInEnvironment: boolean): string {
  if (isInEnvironment) return 'SENDWRIGHT_API_KEY in the environment';
  const file = process.env['SENDWRIGHT_API_KEY_FILE'];
  return file ? `${file} (SENDWRIGHT_API_KEY_FILE)` : 'SENDWRIGHT_API_KEY in .env';
}

/** Converts an error of the API to a message; undefined for other errors. */
export function refusalOf(error: unknown, { keyOrigin }: Api): Refusal | undefined {
  if (!(error instanceof SendwrightError)) return undefined;
  const { code, message } = error;
  if (code === 'unexpected_answer') return new Refusal(`${message}: is SENDWRIGHT_URL right?`);
  if (code === 'no_answer' || code === 'timeout') {
    return new Refusal(`${message}: is it running, and is SENDWRIGHT_URL right?`);
  }
  const isAboutKey = code === 'unauthorized' || code === 'insufficient_scope';
  return new Refusal(isAboutKey ? `${message}\nThe request used ${keyOrigin}.` : message);
}
