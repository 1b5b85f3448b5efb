import { OPERATOR } from '../../accounts/audit.ts';
import { insertAudit } from '../../store/accounts/audit.ts';
import { type Db, type Pool, transaction } from '../../store/postgres/pool.ts';

/** An audited action on an organization, named like the API's audit actions: `domains.create`. */
interface AuditedCommand {
  readonly organization: string;
  readonly action: string;
  /** Further fields of the audit entry, without secrets. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** Makes a change and records it in the audit log, in one transaction. The target of the entry is the `id` of the result. */
export async function auditedInTransaction<T extends object>(
  pool: Pool,
  command: AuditedCommand,
  change: (db: Db) => Promise<T>,
): Promise<T> {
  return transaction(pool, async (client) => {
    const result = await change(client);
    await recordAudit(client, command, result);
    return result;
  });
}

/**
 * Makes a change with its own transaction, then records it in the audit log. If the entry cannot be recorded, it prints a warning:
 * the result may contain a secret that is shown only once.
 */
export async function audited<T>(pool: Pool, command: AuditedCommand, change: () => Promise<T>): Promise<T> {
  const result = await change();
  await recordAuditOrWarn(pool, command, result);
  return result;
}

/**
 * Makes changes in several transactions, then records them in the audit log, even if a later one has failed. If the entry cannot be
 * recorded, it prints a warning, because the caller needs the result or the error of the changes.
 */
export async function auditedInParts<T>(pool: Pool, command: AuditedCommand, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } finally {
    await recordAuditOrWarn(pool, command, null);
  }
}

async function recordAuditOrWarn(db: Db, command: AuditedCommand, result: unknown): Promise<void> {
  await recordAudit(db, command, result).catch((error: unknown) => {
    console.error(`warning: ${command.action} is missing in the audit log: ${String(error)}`);
  });
}

async function recordAudit(
  db: Db,
  { organization, action, detail = {} }: AuditedCommand,
  result: unknown,
): Promise<void> {
  const { id } = (result ?? {}) as { id?: unknown };
  const target = typeof id === 'string' ? id : null;
  await insertAudit(db, { org_id: organization, ...OPERATOR, action, target, detail });
}
