import type { ChatOutcome } from '../chat-provider.ts';
import { classifyRefusal, type ErrorCodes, kindOfCode } from '../chat-refusals.ts';
import { isText, objectOf } from '../json-fields.ts';

/** Meta's error object in a response or report; every field may be missing. */
interface MetaError {
  readonly code: number | undefined;
  readonly subcode: number | undefined;
  readonly message: string | undefined;
}

/** https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes */
const CODES: ErrorCodes = {
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
  const error = objectOf(input);
  const data = error['error_data'] as { details?: unknown } | null | undefined;
  return {
    code: integerOf(error['code']),
    subcode: integerOf(error['error_subcode']),
    message: textOf(data?.details) ?? textOf(error['message'])?.replace(/^\(#\d+\)\s*/, '') ?? textOf(error['title']),
  };
}

function integerOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

function textOf(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}

/** Classifies an unsuccessful response. The HTTP status decides for codes that are not listed. */
export function classifyMetaRefusal(status: number, error: MetaError, afterMs?: number): ChatOutcome {
  return classifyRefusal('Meta', kindOf(error), { status, code: error.code, message: error.message, afterMs });
}

function kindOf({ code, subcode }: MetaError): ReturnType<typeof kindOfCode> {
  if (code === 100 && subcode === UNKNOWN_NUMBER) return 'account';
  if (code !== undefined && code >= PERMISSIONS.from && code <= PERMISSIONS.to) return 'account';
  return kindOfCode(CODES, code);
}
