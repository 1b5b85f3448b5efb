import { whatsAppForms } from '../domain/chat/phone.ts';
import { possibleRecipients } from '../domain/recipient-texts.ts';
import { insertAudit } from '../store/accounts/audit.ts';
import { restoreErased } from '../store/emails/erasure.ts';
import type { ErasureRecord } from '../store/files/erasure-records.ts';
import { walkRecipientTexts } from '../store/upkeep/recipient-texts.ts';
import { type ErasureDeps, eraseRecipientCompletely, type Recipient } from './erasure.ts';

/**
 * Repeats recorded erasures in a database that was restored from a backup: all of them are suppressed again, and those that the
 * database contains again are erased. Idempotent.
 * @returns the number of recipients that were erased
 * @throws UnknownKey if neither SECRET_KEY nor SECRET_KEY_OLD opens a data key
 */
export async function replayErasures(deps: ErasureDeps, records: readonly ErasureRecord[]): Promise<number> {
  let count = 0;
  for (const record of records) {
    // The backup may be from before the organization was created.
    if (!(await restoreErased(deps.pool, record))) continue;
    let erased = 0;
    for (const recipient of await findErased(deps, record)) {
      const report = await eraseRecipientCompletely(deps, record.org_id, recipient);
      if (Object.values(report).some((changed) => changed > 0)) erased++;
    }
    if (erased > 0) await audit(deps, record.org_id, erased);
    count += erased;
  }
  return count;
}

/** Finds the recipients with recorded hashes in the data of their organization. */
async function findErased({ pool, contents }: ErasureDeps, { org_id, hashes }: ErasureRecord): Promise<Recipient[]> {
  const erased = new Set(hashes.map((hash) => hash.toString('base64')));
  const found = new Set<string>();
  await walkRecipientTexts(pool, org_id, async (texts, client) => {
    const possible = [...new Set(texts.flatMap((text) => [...possibleRecipients(text)]))];
    const hashed = (await contents.hashAddresses(client, org_id, possible)) ?? [];
    possible.forEach((text, index) => {
      if (erased.has(hashed[index]?.toString('base64') ?? '')) found.add(text);
    });
  });
  return toRecipients([...found]);
}

/** Numbers are before ids of users, since the erasure of a number finds its users by contacts that it deletes. */
function toRecipients(texts: readonly string[]): Recipient[] {
  const emails = texts.filter((text) => text.includes('@'));
  const numbers = texts.filter((text) => text.startsWith('+'));
  const userIds = texts.filter((text) => !text.includes('@') && !text.startsWith('+'));
  const forms = numbers.map((number) => new Set([number, ...whatsAppForms(number)]));
  // An erasure includes the other forms of its number.
  const first = numbers.filter((number, index) => !forms.slice(0, index).some((earlier) => earlier.has(number)));
  return [
    ...emails.map((email) => ({ email })),
    ...first.map((phone) => ({ phone })),
    ...userIds.map((userId) => ({ userId })),
  ];
}

/** The audit log's entries about the erasures are as old as the backup. */
async function audit({ pool }: ErasureDeps, orgId: string, recipients: number): Promise<void> {
  await insertAudit(pool, {
    ...{ org_id: orgId, actor_kind: 'system', actor_id: 'after-restore' },
    ...{ action: 'erasures.create', target: null, detail: { recipients } },
  });
}
