import { join } from 'node:path';
import { Sendwright, SendwrightError } from '../../../client/index.ts';
import { parseApiKey } from '../../accounts/keys.ts';
import { type DevFile, readDevFile } from '../dev-file.ts';
import { readSettings } from '../env.ts';

/** The public API, with the permissions of one key. */
export interface Api {
  readonly url: string;
  /** An address that email can be sent from, if it is known: that of `npm start`. */
  readonly from: string | undefined;
  /** The key and where it was read from, for error messages; without the secret. */
  readonly keyOrigin: string;
  readonly client: Sendwright;
}

/** A command that cannot be carried out; the message is a sentence for people. */
export class Refusal extends Error {}

/** Milliseconds for one attempt of a request; a service that is stopping or starting takes a while. */
const TIMEOUT_MS = 30_000;
/** Few, since a person waits. */
const RETRIES = 1;

/**
 * The API and key of `SENDWRIGHT_URL` and `SENDWRIGHT_API_KEY`, else of the `npm start` that runs in `SENDWRIGHT_HOME`.
 * Ends the process with a sentence when there are none. The key of one service is never sent to another.
 */
export async function findApi(): Promise<Api> {
  // Before `.env` and the files of `…_FILE` complete the environment.
  const isInEnvironment = Boolean(process.env['SENDWRIGHT_API_KEY']);
  const { SENDWRIGHT_URL, SENDWRIGHT_API_KEY, SENDWRIGHT_HOME } = readSettings();
  const devPath = join(SENDWRIGHT_HOME, 'dev.json');
  const dev: Partial<DevFile> = (await readDevFile(devPath)) ?? {};
  const url = SENDWRIGHT_URL ?? dev.base_url ?? readSettings('SENDWRIGHT_URL').SENDWRIGHT_URL;
  const isOurs = url === dev.base_url;
  const apiKey =
    SENDWRIGHT_API_KEY ?? (isOurs ? dev.api_key : undefined) ?? readSettings('SENDWRIGHT_API_KEY').SENDWRIGHT_API_KEY;
  const from = isOurs && apiKey === dev.api_key ? dev.from : undefined;
  const origin = SENDWRIGHT_API_KEY === undefined ? devPath : originOfSetting(isInEnvironment);
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

/** An error of the API in words for people; undefined when it is another error. */
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
