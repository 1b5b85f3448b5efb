import { join } from 'node:path';
import { Sendwright, SendwrightError } from '../../../client/index.ts';
import { type DevFile, readDevFile } from '../embedded/dev-file.ts';
import { readSettings } from '../env.ts';

/** The public API, as far as one key may use it. */
export interface Api {
  readonly url: string;
  /** An address that may be sent from, where it is known: that of `npm start`. */
  readonly from: string | undefined;
  readonly client: Sendwright;
}

/** What was asked for cannot be done; the message is a sentence for people. */
export class Refusal extends Error {}

/** Milliseconds for one try of a request; a service that is stopping or starting takes a while. */
const WITHIN = 30_000;
/** Somebody waits. */
const RETRIES = 1;

/**
 * The API and key of `SENDWRIGHT_URL` and `SENDWRIGHT_API_KEY`, else of the `npm start` that runs in `SENDWRIGHT_HOME`.
 * Ends the process with a sentence when there are none: the key of one service is never shown to another.
 */
export async function findApi(): Promise<Api> {
  const { SENDWRIGHT_URL, SENDWRIGHT_API_KEY, SENDWRIGHT_HOME } = readSettings();
  const dev: Partial<DevFile> = (await readDevFile(join(SENDWRIGHT_HOME, 'dev.json'))) ?? {};
  const url = SENDWRIGHT_URL ?? dev.base_url ?? readSettings('SENDWRIGHT_URL').SENDWRIGHT_URL;
  const isOurs = url === dev.base_url;
  const apiKey =
    SENDWRIGHT_API_KEY ?? (isOurs ? dev.api_key : undefined) ?? readSettings('SENDWRIGHT_API_KEY').SENDWRIGHT_API_KEY;
  const from = isOurs && apiKey === dev.api_key ? dev.from : undefined;
  return { url, from, client: new Sendwright({ baseUrl: url, apiKey, timeout: WITHIN, retries: RETRIES }) };
}

/** What to say of an error of the API or of a command; undefined when it is neither's. */
export function sentence(error: unknown): string | undefined {
  if (error instanceof Refusal) return error.message;
  if (!(error instanceof SendwrightError)) return undefined;
  if (error.code === 'unexpected_answer') return `${error.message}: is SENDWRIGHT_URL right?`;
  const isSilent = error.code === 'no_answer' || error.code === 'timeout';
  return isSilent ? `${error.message}: is it running, and is SENDWRIGHT_URL right?` : error.message;
}
