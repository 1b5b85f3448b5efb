import { SendwrightError } from './errors.ts';

export interface Options {
  /** The URL of the service, such as `https://mail.example.com`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Timeout of one attempt in milliseconds; 60,000 by default. */
  readonly timeout?: number | undefined;
  /** Maximum number of retries after transient failures; 3 by default. */
  readonly retries?: number | undefined;
  /** Replaces the global `fetch`, for tests or a proxy. */
  readonly fetch?: typeof fetch | undefined;
}

/** Validated options with defaults. */
export interface CheckedOptions {
  /** Without a trailing slash. */
  readonly base: string;
  readonly apiKey: string;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly fetch: typeof fetch;
}

/** The maximum delay of a timer in Node. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Validates options. Programs in JavaScript and unset environment variables can pass values of other types.
 * @throws SendwrightError with the code `invalid_argument` and the option in `param`
 */
export function checkOptions(options: Options): CheckedOptions {
  const { baseUrl, apiKey, timeout = 60_000, retries = 3, fetch: ownFetch = fetch } = options;
  const base = checkBaseUrl(baseUrl);
  if (!Number.isInteger(timeout) || timeout < 1 || timeout > MAX_TIMEOUT_MS) {
    throw invalid('timeout', `is not a whole number of milliseconds; 1 to ${MAX_TIMEOUT_MS} are allowed`);
  }
  if (!Number.isInteger(retries) || retries < 0) {
    throw invalid('retries', 'is not a whole number; 0 and more are allowed');
  }
  return { base, apiKey: checkApiKey(apiKey), timeoutMs: timeout, retries, fetch: ownFetch };
}

function checkBaseUrl(value: unknown): string {
  const needed = 'an http or https URL such as https://mail.example.com is required';
  if (typeof value !== 'string' || value.trim() === '') throw invalid('baseUrl', `is missing; ${needed}`);
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw invalid('baseUrl', `${JSON.stringify(value)} is not an http or https URL; ${needed}`);
  }
  if (url.username !== '' || url.password !== '') throw invalid('baseUrl', `contains credentials; ${needed}`);
  if (url.search !== '' || url.hash !== '') throw invalid('baseUrl', `has a query or a fragment; ${needed}`);
  let base = url.href;
  while (base.endsWith('/')) base = base.slice(0, -1);
  return base;
}

/** Validates the key, after removing white space around it, such as the line break at the end of a file. */
function checkApiKey(value: unknown): string {
  const key = typeof value === 'string' ? value.trim() : '';
  if (key === '') throw invalid('apiKey', 'is missing; an API key of the service (sw_live_…) is required');
  // A header does not allow other characters, or no key contains them.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw invalid('apiKey', 'contains characters that no key has; only visible ASCII characters are allowed');
  }
  return key;
}

function invalid(param: string, problem: string): SendwrightError {
  return new SendwrightError(`${param}: ${problem}`, { code: 'invalid_argument', param });
}
