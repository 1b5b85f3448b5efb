import { createOrganization } from '../../intake/accounts.ts';
import { giveBodyRetention } from '../../intake/body-retention.ts';
import { createKey, endKey } from '../../intake/keys.ts';
import { giveQuota } from '../../intake/quota.ts';
import { listOrganizations } from '../../store/accounts.ts';
import { PRESETS } from '../../store/keys.ts';
import { endWith } from '../process.ts';
import { type DatabaseCommand, each, needed } from './command.ts';

/** Organizations, their keys and what they may use. */
export const ACCOUNTS = {
  'organization create': {
    usage: '--name N',
    run: (pool, options) => createOrganization(pool, needed(options, 'name')),
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
      await giveBodyRetention(pool, organization, bodyRetentionDays);
      return { organization, body_retention_days: bodyRetentionDays };
    },
  },
  'key create': {
    usage: `--organization O [--preset ${PRESETS.join('|')}] [--domain D]…`,
    run: async (pool, options) => {
      const given = options['preset'] ?? 'full_access';
      const preset = PRESETS.find((name) => name === given) ?? endWith(`--preset must be one of ${PRESETS.join(', ')}`);
      return createKey(pool, needed(options, 'organization'), preset, each(options, 'domain'));
    },
  },
  'key revoke': { usage: '--key K', run: async (pool, options) => endKey(pool, needed(options, 'key')) },
  'quota set': {
    usage: '--organization O --monthly N|none',
    run: async (pool, options) => {
      const [organization, monthly] = [needed(options, 'organization'), needed(options, 'monthly')];
      if (!/^(?:\d{1,15}|none)$/.test(monthly)) endWith('--monthly must be a number of emails, or none for no quota');
      const quota = monthly === 'none' ? null : Number(monthly);
      const { monthly: given, used, resets_at } = await giveQuota(pool, organization, quota);
      return { organization, monthly: given, used, resets_at };
    },
  },
} satisfies Record<string, DatabaseCommand>;
