import { parseMailbox } from '../domain/email/address.ts';
import { ServiceError } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { type Db, type Pool, transaction } from '../store/postgres/pool.ts';
import { askForProviderRemoval } from '../store/suppressions/provider-lists.ts';
import {
  addSuppressions,
  findSuppressions,
  listSuppressions,
  removeSuppressions,
  type Suppression,
} from '../store/suppressions/suppressions.ts';

/**
 * An address as lists hold it: bare and in lower case.
 * @param text an address in one of the two forms of the contract
 * @throws ServiceError validation_error
 */
export function listedAddress(text: string, param: string): string {
  const mailbox = parseMailbox(text);
  if (typeof mailbox === 'string') throw new ServiceError('validation_error', mailbox, param);
  return mailbox.address.toLowerCase();
}

/**
 * Puts addresses on an organization's list by hand, so that nothing goes there any more. Those that are there already,
 * for whatever reason, stay as they are.
 * @param addresses bare, in lower case
 * @returns how many are new, and what the list says of each address, in the order given
 */
export async function suppress(
  db: Db,
  orgId: string,
  addresses: readonly string[],
): Promise<{ added: number; suppressions: Suppression[] }> {
  const wished = [...new Set(addresses)];
  const listed = new Map<string, Suppression>();
  let added = 0;
  // Again only for what somebody else takes off the list between the two statements. They are no transaction, since a
  // second round would take locks out of order while it holds those of the first.
  for (let missing = wished; missing.length > 0; missing = wished.filter((email) => !listed.has(email))) {
    const now = Date.now();
    const additions = missing.map((email) => ({
      id: newId('sup', now),
      event_id: newId('evt', now),
      org_id: orgId,
      email,
      origin: 'manual' as const,
    }));
    added += (await addSuppressions(db, additions)).length;
    for (const suppression of await findSuppressions(db, orgId, missing)) {
      if (suppression.origin !== 'unsubscribe') listed.set(suppression.email, suppression);
    }
  }
  return { added, suppressions: wished.map((email) => listed.get(email) as Suppression) };
}

/**
 * What the list has under a name; of an address with two entries, the one for all mail.
 * @param idOrEmail an id, or an address in any case
 * @throws ServiceError not_found
 */
export async function findSuppression(db: Db, orgId: string, idOrEmail: string): Promise<Suppression> {
  const [suppression] = await findSuppressions(db, orgId, [nameOf(idOrEmail)]);
  if (!suppression) throw notListed();
  return suppression;
}

/** Entries that are read at a time. */
const PAGE = 1_000;

/** All of an organization's list, newest first. */
export async function allSuppressions(db: Db, orgId: string): Promise<Suppression[]> {
  const all: Suppression[] = [];
  for (;;) {
    const page = await listSuppressions(db, orgId, { origin: null, email: null }, all.at(-1) ?? null, PAGE);
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}

/**
 * Takes an entry off an organization's list, or all of an address, and leaves word for the provider's own list. Mail goes
 * there again as soon as the provider lets it, within seconds as a rule.
 * @param idOrEmail an id, or an address in any case
 * @returns how many entries there were
 * @throws ServiceError not_found
 */
export async function unsuppress(pool: Pool, orgId: string, idOrEmail: string): Promise<number> {
  const now = Date.now();
  return transaction(pool, async (client) => {
    const eventIds = [newId('evt', now), newId('evt', now)] as const;
    const removed = await removeSuppressions(client, orgId, nameOf(idOrEmail), null, eventIds);
    if (removed.length === 0) throw notListed();
    await askForProviderRemoval(
      client,
      orgId,
      removed.map(({ email }) => email),
    );
    return removed.length;
  });
}

/** What no address is, is taken for an id. */
function nameOf(idOrEmail: string): string {
  const mailbox = parseMailbox(idOrEmail);
  return typeof mailbox === 'string' ? idOrEmail : mailbox.address.toLowerCase();
}

function notListed(): ServiceError {
  return new ServiceError('not_found', 'the suppression list has no entry with this id or address');
}
