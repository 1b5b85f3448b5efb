import type { ChatOutcome } from '../chat-provider.ts';
import { isText } from '../json-fields.ts';

type Kind = 'refused' | 'busy' | 'account';

/** An error as Meta words it, in an answer or in a report; all of it may be missing. */
export interface MetaError {
  readonly code: number | undefined;
  readonly subcode: number | undefined;
  readonly message: string | undefined;
}

/**
 * Error codes by what they ask for (https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes). `busy`
 * passes by itself, `account` when our account or settings are repaired, `refused` never.
 */
const CODES: Readonly<Record<Kind, ReadonlySet<number>>> = {
  busy: new Set([1, 2, 4, 80007, 130429, 131000, 131016, 131056, 131057, 133004]),
  account: new Set([0, 3, 10, 33, 190, 368, 131005, 131031, 131042, 131045, 131048, 133010]),
  refused: new Set([
    100, 130472, 130497, 131008, 131009, 131021, 131026, 131047, 131049, 131050, 131051, 131052, 131053, 131062, 132000,
    132001, 132005, 132007, 132012, 132015, 132016, 132068, 132069,
  ]),
};
/** Permissions that our token lacks. */
const PERMISSIONS = { from: 200, to: 299 };
/** Of code 100: the number's id in the path is not one that our token may use. */
const UNKNOWN_NUMBER = 33;

/** Reads an error object. `details` is the most specific; its `message` begins with the code. */
export function readError(input: unknown): MetaError {
  const error = (typeof input === 'object' && input !== null ? input : {}) as Record<string, unknown>;
  const data = error['error_data'] as { details?: unknown } | null | undefined;
  return {
    code: numberOf(error['code']),
    subcode: numberOf(error['error_subcode']),
    message: textOf(data?.details) ?? textOf(error['message'])?.replace(/^\(#\d+\)\s*/, '') ?? textOf(error['title']),
  };
}

function numberOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

function textOf(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}

/** A sentence for customers: the event, the reason if known, and Meta's code. */
export function sentence(what: string, { code, message }: Omit<MetaError, 'subcode'>): string {
  const number = code === undefined ? '' : ` (error ${code})`;
  return message === undefined ? `${what}${number}.` : `${what}: ${message.replace(/\.$/, '')}${number}.`;
}

/**
 * Classifies an unsuccessful response. The HTTP status decides for codes that are not listed.
 * @param after milliseconds of its Retry-After
 */
export function classifyRefusal(status: number, error: MetaError, after: number | undefined): ChatOutcome {
  const codes = { ...(error.code !== undefined && { code: String(error.code) }) };
  switch (kindOf(error) ?? kindOfStatus(status, error.code !== undefined)) {
    case 'refused':
      return { kind: 'refused', detail: sentence('Meta refused it', error), ...codes };
    case 'account':
      return { kind: 'account', detail: sentence(`Meta answered ${status}`, error), ...codes };
    case 'busy':
      return {
        kind: 'busy',
        detail: sentence(`Meta answered ${status}`, error),
        ...codes,
        ...(after !== undefined && { after }),
      };
    case 'unknown':
      return { kind: 'unknown', detail: sentence(`Meta answered ${status}`, error) };
  }
}

function kindOf({ code, subcode }: MetaError): Kind | undefined {
  if (code === undefined) return undefined;
  if (code === 100 && subcode === UNKNOWN_NUMBER) return 'account';
  if (code >= PERMISSIONS.from && code <= PERMISSIONS.to) return 'account';
  return (Object.keys(CODES) as Kind[]).find((kind) => CODES[kind].has(code));
}

/** Without a code of Meta's, a 5xx may come from something in front of it that passed the message on. */
function kindOfStatus(status: number, isMeta: boolean): Kind | 'unknown' {
  if (status === 429 || status === 503) return 'busy';
  if (status === 408 || status >= 500) return isMeta ? 'busy' : 'unknown';
  return status === 400 && isMeta ? 'refused' : 'account';
}
