import { numberProblem, phoneNumberIdProblem, tokenProblem } from '../domain/chat-rules.ts';
import type { ChatProviderName } from '../domain/chat.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { parsePhone } from '../domain/phone.ts';
import { makeSeal, type Seal } from '../domain/seal.ts';
import { deriveKeys, type SecretKeys } from '../domain/secret-key.ts';
import { type ChatNumber, deleteNumber, findNumber, insertNumber, type NumberTemplate } from '../store/chat-numbers.ts';
import { type Db, isDuplicate } from '../store/pool.ts';
import { requireOrganization } from './accounts.ts';

/** What seals and opens the tokens of numbers; what is sealed is the token's text, about the number's id. */
export function chatSeal(secretKey: SecretKeys): Seal {
  return makeSeal(deriveKeys(secretKey, 'chat credentials'));
}

/** A number as its owner connects it. Fields that its provider does not use are null. */
export interface NumberRequest {
  /** In international form. */
  readonly number: string;
  readonly provider: ChatProviderName;
  readonly phone_number_id: string | null;
  readonly account_sid: string | null;
  /** A token of its own; without it, that of the settings is used. */
  readonly token: string | null;
  readonly templates: readonly NumberTemplate[];
}

/**
 * Connects a number, from which messages can be sent at once.
 * @throws ServiceError conflict when it is connected already, to this organization or another one
 */
export async function connectNumber(
  db: Db,
  seal: Seal,
  orgId: string,
  { token, number, ...wish }: NumberRequest,
): Promise<ChatNumber> {
  const phone = parsePhone(number);
  if (typeof phone === 'string') throw new ServiceError('validation_error', phone, 'number');
  const id = newId('num', Date.now());
  const templates = [...wish.templates];
  const sealed = token === null ? null : seal.close(Buffer.from(token), id);
  const inserting = insertNumber(db, orgId, { ...wish, id, number: phone.number, templates }, sealed);
  const connected = await inserting.catch((error: unknown) => {
    throw isDuplicate(error) ? new ServiceError('conflict', 'is connected already', 'number') : error;
  });
  if (!connected) throw new Error('the statement that connects a number answered nothing');
  return { ...connected, templates };
}

/**
 * Connects a number of an organization that is named by hand.
 * @throws ServiceError validation_error, not_found for the organization, and what connectNumber throws
 */
export async function addNumber(
  db: Db,
  seal: Seal,
  orgId: string,
  request: Pick<NumberRequest, 'number' | 'provider' | 'phone_number_id' | 'token'>,
): Promise<Pick<ChatNumber, 'id' | 'number' | 'provider'>> {
  const { provider, phone_number_id: phoneNumberId, token } = request;
  const missing = numberProblem({ provider, phone_number_id: phoneNumberId });
  if (missing) throw new ServiceError('validation_error', missing.message, missing.path);
  if (phoneNumberId !== null) refuse(phoneNumberIdProblem(phoneNumberId), 'phone_number_id');
  if (token !== null) refuse(tokenProblem(token), 'token');
  await requireOrganization(db, orgId);
  const { id, number } = await connectNumber(db, seal, orgId, { ...request, account_sid: null, templates: [] });
  return { id, number, provider };
}

function refuse(message: string | undefined, param: string): void {
  if (message !== undefined) throw new ServiceError('validation_error', message, param);
}

/** @throws ServiceError not_found */
export async function requireNumber(db: Db, orgId: string, id: string): Promise<ChatNumber> {
  const number = await findNumber(db, orgId, id);
  if (!number) throw noNumber();
  return number;
}

/**
 * Forgets a number. What waits to be sent from it fails.
 * @throws ServiceError not_found
 */
export async function removeNumber(db: Db, orgId: string, id: string): Promise<void> {
  if (!(await deleteNumber(db, orgId, id))) throw noNumber();
}

/** There is none, or it is another organization's. */
function noNumber(): ServiceError {
  return new ServiceError('not_found', 'there is no chat-app number with this id');
}
