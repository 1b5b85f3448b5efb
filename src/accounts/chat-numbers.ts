import { numberProblem, phoneNumberIdProblem, sidProblem, tokenProblem } from '../domain/chat/rules.ts';
import type { ChatProviderName, NumberClaim, NumberVerification, NumberVerifier } from '../domain/chat/chat.ts';
import { notFound, type Problem, refuseProblem, requireFound, requireValid, ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import { parsePhone } from '../domain/chat/phone.ts';
import { makeSeal, type Seal } from '../lib/seal.ts';
import { deriveKeys, type SecretKeys } from '../lib/secret-key.ts';
import {
  type ChatNumber,
  deleteNumber,
  findNumber,
  insertNumber,
  listNumbersOfAll,
  lockConflictingNumbers,
  type NumberTemplate,
  type OperatorNumber,
} from '../store/chat/numbers.ts';
import { addContents } from '../store/chat/contents.ts';
import { reassignMessages } from '../store/messages/changes.ts';
import type { SendingNumber } from '../store/messages/delivery.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { requireOrganization } from './organizations.ts';
import { type OrganizationLimits, requireCapacity, UNLIMITED_ORGANIZATION } from './organization-limits.ts';

/** Creates the seal for the tokens of numbers. The associated data is the number's id. */
export function chatSeal(secretKey: SecretKeys): Seal {
  return makeSeal(deriveKeys(secretKey, 'chat credentials'));
}

/**
 * Opens the token of a number; undefined if it has none of its own.
 * @throws Error if the token was sealed with an unknown key
 */
export function openNumberToken(
  seal: Seal,
  { id, credentials }: Pick<SendingNumber, 'id' | 'credentials'>,
): string | undefined {
  return credentials ? seal.open(credentials, id).toString() : undefined;
}

/** A request to connect a number. Fields that its provider does not use are null. */
interface NumberRequest extends Omit<NumberClaim, 'token'> {
  /** The number's own token; null uses the token in the settings. */
  readonly token: string | null;
  readonly templates: readonly NumberTemplate[];
}

export interface ConnectDeps {
  readonly pool: Pool;
  readonly seal: Seal;
  readonly verifyNumber: (claim: NumberClaim) => Promise<NumberVerification>;
  /** Undefined means no limits. */
  readonly limits?: OrganizationLimits;
}

/**
 * Connects a number for its organization after the provider has confirmed that it belongs to the account of the token. A number
 * without its own token would send from the operator's account, whose numbers may belong to other organizations; only the
 * operator can connect those.
 * @throws ServiceError validation_error; conflict if it is connected already, to this or another organization; unavailable if the
 * provider does not respond; limit_exceeded
 */
export async function connectOwnNumber(
  { pool, seal, verifyNumber, limits }: ConnectDeps,
  orgId: string,
  request: NumberRequest,
): Promise<ChatNumber> {
  const { provider, token } = request;
  const number = toE164(request.number);
  if (token === null) throw new ServiceError('validation_error', OPERATOR_ONLY, TOKEN_FIELDS[provider]);
  const verification = await verifyNumber({ ...request, number, token });
  if (verification.kind === 'unavailable') {
    throw new ServiceError('unavailable', `${verification.provider} could not confirm the number; try again`);
  }
  if (verification.kind === 'refused') {
    throw new ServiceError('validation_error', verification.message, verification.param);
  }
  return connectNumber(pool, seal, orgId, { ...request, number }, 'provider', limits);
}

const TOKEN_FIELDS: Readonly<Record<ChatProviderName, string>> = { twilio: 'auth_token', meta: 'access_token' };
const OPERATOR_ONLY =
  "is missing; only the operator can connect a number on the operator's account, with the command line";

function toE164(number: string): string {
  return requireValid(parsePhone(number), 'number').number;
}

/**
 * Stores a number that belongs to an organization, and deletes unconfirmed claims to it. Open messages from an earlier connection
 * of the number to the same organization are sent by the new one.
 * @param number E.164
 * @throws ServiceError conflict if a confirmed claim exists; limit_exceeded
 */
async function connectNumber(
  pool: Pool,
  seal: Seal,
  orgId: string,
  { token, ...requested }: NumberRequest,
  verifiedBy: NumberVerifier,
  limits = UNLIMITED_ORGANIZATION,
): Promise<ChatNumber> {
  const { number, provider, phone_number_id: phoneNumberId } = requested;
  const templates = [...requested.templates];
  return transaction(pool, async (client) => {
    const conflicts = await lockConflictingNumbers(client, number, provider, phoneNumberId);
    const confirmed = conflicts.find(({ verified_by }) => verified_by !== null);
    if (confirmed) {
      const param = confirmed.number === number ? 'number' : 'phone_number_id';
      throw new ServiceError('conflict', 'is connected already', param);
    }
    for (const conflict of conflicts) await deleteNumber(client, conflict.org_id, conflict.id);
    await requireCapacity(client, limits, 'numbers', orgId);
    // Keep the id if the organization itself had an unconfirmed claim, because pending messages refer to it.
    const own = conflicts.find((conflict) => conflict.org_id === orgId && conflict.number === number);
    const id = own?.id ?? newId('num');
    const sealed = token === null ? null : seal.close(Buffer.from(token), id);
    const row = { ...requested, id, templates, verified_by: verifiedBy };
    const connected = await insertNumber(client, orgId, row, sealed);
    await reassignMessages(client, { orgId, channel: 'chatapp' }, { id, from: number, provider });
    return { ...connected, templates };
  });
}

/**
 * Connects a number on the operator's authority, without asking the provider.
 * @throws ServiceError validation_error, not_found for the organization, conflict if it is connected already
 */
export async function connectNumberForOperator(
  pool: Pool,
  seal: Seal,
  orgId: string,
  request: NumberRequest,
): Promise<Pick<ChatNumber, 'id' | 'number' | 'provider'>> {
  const { provider, phone_number_id: phoneNumberId, account_sid, token } = request;
  const templates = request.templates.length > 0 ? request.templates : null;
  const auth_token = provider === 'twilio' ? token : null;
  const fields = { provider, phone_number_id: phoneNumberId, account_sid, auth_token, templates };
  const problem = accountProblem(request) ?? numberProblem(fields);
  if (problem) throw new ServiceError('validation_error', problem.message, problem.path);
  refuseInvalidCredentials(request, 'token');
  const requested = { ...request, number: toE164(request.number) };
  await requireOrganization(pool, orgId);
  const { id, number } = await connectNumber(pool, seal, orgId, requested, 'operator');
  return { id, number, provider };
}

/**
 * Refuses credentials of an invalid form.
 * @param tokenField the name of the token in the error
 * @throws ServiceError validation_error
 */
export function refuseInvalidCredentials(
  { phone_number_id, account_sid, token }: Pick<NumberRequest, 'phone_number_id' | 'account_sid' | 'token'>,
  tokenField: string,
): void {
  if (phone_number_id !== null) refuseProblem(phoneNumberIdProblem(phone_number_id), 'phone_number_id');
  if (account_sid !== null) refuseProblem(sidProblem('AC', account_sid), 'account_sid');
  if (token !== null) refuseProblem(tokenProblem(token), tokenField);
}

/** Requires both parts of a Twilio account: without the SID, the token would be used with the account in the settings. */
function accountProblem({ provider, account_sid: accountSid, token }: NumberRequest): Problem | undefined {
  if (provider !== 'twilio' || (accountSid === null) === (token === null)) return undefined;
  return accountSid === null
    ? { path: 'account_sid', message: 'is required with token' }
    : { path: 'token', message: 'is required with account_sid' };
}

/** @throws ServiceError not_found */
export async function requireNumber(db: Db, orgId: string, id: string): Promise<ChatNumber> {
  return requireFound(await findNumber(db, orgId, id), 'chat-app number');
}

/**
 * Deletes a number. Pending messages from it fail when they are due, unless it is connected again first.
 * @throws ServiceError not_found
 */
export async function removeNumber(db: Db, orgId: string, id: string): Promise<void> {
  if (!(await deleteNumber(db, orgId, id))) throw notFound('chat-app number');
}

/**
 * Deletes a number for the operator, who identifies it by its organization and number.
 * @throws ServiceError validation_error, not_found
 */
export async function removeNumberForOperator(
  db: Db,
  orgId: string,
  numberText: string,
): Promise<{ id: string; number: string }> {
  const { id, number } = await requireNumberForOperator(db, orgId, numberText);
  await removeNumber(db, orgId, id);
  return { id, number };
}

/**
 * Adds or replaces templates of a Twilio number. Each maps to a content of its Twilio account. Other templates are unchanged.
 * @throws ServiceError validation_error, not_found
 */
export async function addNumberTemplates(
  db: Db,
  orgId: string,
  numberText: string,
  templates: readonly NumberTemplate[],
): Promise<ChatNumber> {
  const { id, provider } = await requireNumberForOperator(db, orgId, numberText);
  if (provider !== 'twilio') throw new ServiceError('validation_error', `are not used by ${provider}`, 'template');
  await addContents(
    db,
    id,
    templates.map(({ content_sid: contentSid, ...template }) => ({ ...template, contentSid })),
    'replace',
  );
  return requireNumber(db, orgId, id);
}

async function requireNumberForOperator(db: Db, orgId: string, numberText: string): Promise<OperatorNumber> {
  const number = toE164(numberText);
  const match = (await listNumbersOfAll(db, orgId)).find((each) => each.number === number);
  if (!match) throw new ServiceError('not_found', `the organization has no number ${number}`, 'number');
  return match;
}
