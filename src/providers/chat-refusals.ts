import { characters } from '../lib/text.ts';
import type { ChatOutcome } from './chat-provider.ts';

type Kind = 'refused' | 'busy' | 'account';

/**
 * A provider's error codes by kind: `busy` is transient, `account` lasts until our account or settings are repaired, and
 * `refused` is permanent.
 */
export type ErrorCodes = Readonly<Record<Kind, ReadonlySet<number>>>;

export function kindOfCode(codes: ErrorCodes, code: number | undefined): Kind | undefined {
  return (Object.keys(codes) as Kind[]).find((kind) => code !== undefined && codes[kind].has(code));
}

/** A sentence for customers: the event, the reason if known, and the provider's code. */
export function sentence(what: string, code: number | undefined, reason: string | undefined): string {
  const number = code === undefined ? '' : ` (error ${code})`;
  return reason === undefined ? `${what}${number}.` : `${what}: ${reason.replace(/\.$/, '')}${number}.`;
}

/** An unsuccessful response. `code` and `message` are missing if something in front of the provider has answered. */
export interface ChatRefusal {
  readonly status: number;
  readonly code: number | undefined;
  readonly message: string | undefined;
  /** Milliseconds of its Retry-After. */
  readonly afterMs: number | undefined;
}

/** Classifies an unsuccessful response. @param kind undefined for codes that are not listed: the HTTP status decides */
export function classifyRefusal(
  provider: string,
  kind: Kind | undefined,
  { status, code, message, afterMs }: ChatRefusal,
): ChatOutcome {
  const decided = kind ?? kindOfStatus(status, code !== undefined);
  const what = decided === 'refused' ? `${provider} refused it` : `${provider} answered ${status}`;
  const detail = sentence(what, code, message);
  if (decided === 'unknown') return { kind: decided, detail };
  const refusal = { kind: decided, detail, ...(code !== undefined && { code: String(code) }) };
  return decided === 'busy' && afterMs !== undefined ? { ...refusal, kind: decided, afterMs } : refusal;
}

/** Without a code of the provider, a 5xx may come from a proxy that passed the request on. 503 counts as not accepted (decision 148). */
function kindOfStatus(status: number, isProvider: boolean): Kind | 'unknown' {
  if (status === 429 || status === 503) return 'busy';
  if (status === 408 || status >= 500) return isProvider ? 'busy' : 'unknown';
  return status === 400 && isProvider ? 'refused' : 'account';
}

/** WhatsApp's own limit. */
const MAX_CAPTION_LENGTH = 1_024;

export function captionProblem(caption: string | null): string | undefined {
  return lengthProblem('WhatsApp', 'a caption', caption, MAX_CAPTION_LENGTH);
}

export function lengthProblem(who: string, what: string, text: string | null, limit: number): string | undefined {
  const length = characters(text ?? '');
  return length > limit ? `${who} accepts at most ${limit} characters of ${what}, not ${length}.` : undefined;
}
