import { ServiceError } from '../domain/errors.ts';
import { newId } from '../lib/ids.ts';
import {
  COUNTRY_PROBLEM,
  isCountry,
  isMessagingService,
  parseSender,
  SENDER_PROBLEM,
  type SmsSender,
} from '../domain/sms/senders.ts';
import { deleteSender, insertSender } from '../store/sms/senders.ts';
import { type Db, isDuplicate } from '../store/postgres/pool.ts';
import { requireOrganization } from './organizations.ts';

/**
 * Connects a sender of the operator's account.
 * @param countries ISO 3166-1 alpha-2 codes of the recipients that it serves; empty for all
 * @throws ServiceError validation_error, not_found for the organization, conflict if it is connected already
 */
export async function addSender(db: Db, orgId: string, text: string, countries: readonly string[]): Promise<SmsSender> {
  const sender = requireSender(text);
  const isService = isMessagingService(sender);
  if (!countries.every(isCountry)) throw new ServiceError('validation_error', COUNTRY_PROBLEM, 'country');
  await requireOrganization(db, orgId);
  const row = {
    id: newId('snd'),
    number: isService ? null : sender,
    messaging_service_sid: isService ? sender : null,
    countries: [...new Set(countries)],
  };
  try {
    return await insertSender(db, orgId, row);
  } catch (error) {
    throw isDuplicate(error) ? new ServiceError('conflict', 'is connected already', 'sender') : error;
  }
}

/** @throws ServiceError validation_error, not_found */
export async function removeSender(db: Db, orgId: string, text: string): Promise<{ id: string; sender: string }> {
  const sender = requireSender(text);
  const deleted = await deleteSender(db, orgId, sender);
  if (!deleted) throw new ServiceError('not_found', `the organization has no sender ${sender}`, 'sender');
  return { ...deleted, sender };
}

function requireSender(text: string): string {
  const sender = parseSender(text);
  if (sender === undefined) throw new ServiceError('validation_error', SENDER_PROBLEM, 'sender');
  return sender;
}
