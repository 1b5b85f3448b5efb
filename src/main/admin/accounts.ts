import { createOrganization } from '../../intake/accounts.ts';
import { OPERATOR } from '../../intake/actor.ts';
import { giveBodyRetention } from '../../intake/body-retention.ts';
import { createKey, endKey } from '../../intake/keys.ts';
import { giveQuota } from '../../intake/quota.ts';
import { resumeOrganization, suspendOrganization } from '../../intake/suspension.ts';
import { listOrganizations } from '../../store/accounts.ts';
import { insertAudit } from '../../store/audit.ts';
import { organizationOfKey, PRESETS } from '../../store/keys.ts';
import { type Pool, transaction } from '../../store/pool.ts';
import { endWith } from '../process.ts';
import { audited, auditedTogether } from './audit.ts';
import { type DatabaseCommand, each, needed, optional } from './command.ts';

/** Organizations, their keys and what they may use. */
export const ACCOUNTS = {
  'organization create': {
    usage: '--name N',
    run: async (pool, options) => {
      const made = await createOrganization(pool, needed(options, 'name'));
      return audited(pool, { organization: made.id, action: 'organizations.create' }, async () => made);
    },
  },
  'organization list': { usage: '', run: (pool) => listOrganizations(pool) },
  'organization retention': {
    usage: '--organization O --days N|default',
    run: async (pool, options) => {
      const [organization, days] = [needed(options, 'organization'), needed(options, 'days')];
      if (!/^(?:\d{1,5}|default)$/.test(days)) {
        endWith('--days must be a number of days, 0 to keep bodies for ever, or default for BODY_RETENTION_DAYS');
      }
      const bodyRetentionDays = days === 'default' ? null : Number(days);
      const change = {
        organization,
        action: 'organizations.update',
        detail: { body_retention_days: bodyRetentionDays },
      };
      await audited(pool, change, () => giveBodyRetention(pool, organization, bodyRetentionDays));
      return { organization, body_retention_days: bodyRetentionDays };
    },
  },
  'organization suspend': {
    usage: '--organization O [--reason R]',
    run: async (pool, options) => {
      const [organization, reason] = [needed(options, 'organization'), optional(options, 'reason') ?? null];
      return auditedTogether(pool, { organization, action: 'organizations.suspend', detail: { reason } }, (db) =>
        suspendOrganization(db, organization, reason),
      );
    },
  },
  'organization resume': {
    usage: '--organization O',
    run: async (pool, options) => {
      const organization = needed(options, 'organization');
      return auditedTogether(pool, { organization, action: 'organizations.resume' }, (db) =>
        resumeOrganization(db, organization),
      );
    },
  },
  'key create': {
    usage: `--organization O [--preset ${PRESETS.join('|')}] [--domain D]…`,
    run: async (pool, options) => {
      const given = options['preset'] ?? 'full_access';
      const preset = PRESETS.find((name) => name === given) ?? endWith(`--preset must be one of ${PRESETS.join(', ')}`);
      const [organization, domains] = [needed(options, 'organization'), each(options, 'domain')];
      return auditedTogether(pool, { organization, action: 'keys.create', detail: { preset, domains } }, (db) =>
        createKey(db, organization, preset, domains),
      );
    },
  },
  'key revoke': { usage: '--key K', run: async (pool, options) => revokeByHand(pool, needed(options, 'key')) },
  'quota set': {
    usage: '--organization O --monthly N|none',
    run: async (pool, options) => {
      const [organization, monthly] = [needed(options, 'organization'), needed(options, 'monthly')];
      if (!/^(?:\d{1,15}|none)$/.test(monthly)) endWith('--monthly must be a number of emails, or none for no quota');
      const quota = monthly === 'none' ? null : Number(monthly);
      const change = { organization, action: 'quota.update', detail: { monthly: quota } };
      const {
        monthly: given,
        used,
        resets_at,
      } = await audited(pool, change, () => giveQuota(pool, organization, quota));
      return { organization, monthly: given, used, resets_at };
    },
  },
} satisfies Record<string, DatabaseCommand>;

async function revokeByHand(pool: Pool, key: string): Promise<{ id: string }> {
  return transaction(pool, async (client) => {
    const ended = await endKey(client, key);
    const organization = await organizationOfKey(client, ended.id);
    const change = { action: 'keys.delete', target: ended.id, detail: {} };
    if (organization !== undefined) await insertAudit(client, { org_id: organization, ...OPERATOR, ...change });
    return ended;
  });
}
