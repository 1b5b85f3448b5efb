import twilio from 'twilio';
import { tracedFetch } from '../http-trace.ts';

export interface TwilioAccount {
  /** `AC` and 32 digits; the SDK accepts no other. */
  readonly accountSid: string;
  readonly authToken: string;
  /** Replaces all of Twilio's hosts; a host at twilio.com replaces only that of messages. */
  readonly baseUrl?: string | undefined;
  /** Deadline of a call; by default 30, and 10 for the verification of a number. */
  readonly timeoutSeconds?: number;
}

const DEFAULT_TIMEOUT_SECONDS = 30;
const TWILIO_HOST = /(?:^|\.)twilio\.com$/;

/** Twilio's SDK on our own connections, which report whether a request was written. It never retries. */
export function twilioClient(account: TwilioAccount) {
  const httpClient = new TracedClient(account.baseUrl, (account.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1_000);
  return twilio(account.accountSid, account.authToken, { httpClient });
}

/** The HTTP client of the SDK, whose own one uses axios. */
class TracedClient extends twilio.RequestClient {
  readonly #baseUrl: URL | undefined;
  readonly #timeoutMs: number;

  constructor(baseUrl: string | undefined, timeoutMs: number) {
    super();
    this.#baseUrl = baseUrl === undefined ? undefined : new URL(baseUrl);
    this.#timeoutMs = timeoutMs;
  }

  override async request(request: Parameters<twilio.RequestClient['request']>[0]) {
    const url = urlOf(request.uri, this.#baseUrl);
    for (const [name, value] of pairsOf(request.params)) url.searchParams.append(name, value);
    const credentials = Buffer.from(`${request.username ?? ''}:${request.password ?? ''}`).toString('base64');
    const answer = await tracedFetch(url.href, {
      method: request.method.toUpperCase(),
      headers: { ...(request.headers as Record<string, string>), Authorization: `Basic ${credentials}` },
      signal: AbortSignal.timeout(this.#timeoutMs),
      ...(request.data !== undefined && { body: new URLSearchParams(pairsOf(request.data)).toString() }),
    });
    // The SDK parses texts itself.
    const body = (await answer.text()) as never;
    return { statusCode: answer.status, body, headers: Object.fromEntries(answer.headers) };
  }
}

/** Returns the URL of an SDK request. A base at twilio.com replaces only the host of messages, any other base all hosts. */
export function urlOf(uri: string, base: URL | undefined): URL {
  const url = new URL(uri);
  if (!base || (TWILIO_HOST.test(base.hostname) && !url.hostname.startsWith('api.'))) return url;
  return new URL(base.href.replace(/\/$/, '') + url.pathname + url.search);
}

/** Returns the pairs of a query or a form; a list becomes one pair for each value. */
function pairsOf(fields: unknown): [string, string][] {
  return Object.entries((fields ?? {}) as Record<string, unknown>).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((each) => each !== undefined && each !== null)
      .map((each): [string, string] => [name, String(each)]),
  );
}
