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
import { reassignMessages } from '../store/messages/changes.ts';
import { deleteSender, insertSender } from '../store/sms/senders.ts';
import { type Db, isDuplicate, type Pool, transaction } from '../store/postgres/pool.ts';
import { requireOrganization } from './organizations.ts';

/**
 * Connects a sender of the operator's account. Open messages from an earlier connection of the sender to the same organization
 * are sent by the new one.
 * @param countries ISO 3166-1 alpha-2 codes of the recipients that it serves; empty for all
 * @throws ServiceError validation_error, not_found for the organization, conflict if it is connected already
 */
export async function addSender(
  pool: Pool,
  orgId: string,
  text: string,
  countries: readonly string[],
): Promise<SmsSender> {
  const sender = requireSender(text);
  const isService = isMessagingService(sender);
  if (!countries.every(isCountry)) throw new ServiceError('validation_error', COUNTRY_PROBLEM, 'country');
  await requireOrganization(pool, orgId);
  const row = {
    id: newId('snd'),
    number: isService ? null : sender,
    messaging_service_sid: isService ? sender : null,
    countries: [...new Set(countries)],
  };
  try {
    return await transaction(pool, async (client) => {
      const connected = await insertSender(client, orgId, row);
      await reassignMessages(client, { orgId, channel: 'sms' }, { id: row.id, from: sender, provider: 'twilio' });
      return connected;
    });
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
