import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { accountLinkSeal } from '../../domain/email/account-link.ts';
import { parseMailbox } from '../../domain/email/address.ts';
import type { AccountEmailSettings } from '../../intake/account-emails.ts';
import { secretKeysOf } from '../../lib/secret-key.ts';
import { findVerifiedHolder } from '../../store/domains/domains.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { readSettings } from '../env.ts';

/**
 * @returns null without `SYSTEM_EMAIL_FROM`; links are then shown in the dashboard, and operators reset passwords on the
 * command line
 */
export function makeAccountEmails(config: Config & { SECRET_KEY: string }): AccountEmailSettings | null {
  const { SYSTEM_EMAIL_FROM: from } = config;
  if (from === undefined) return null;
  const { PUBLIC_URL: publicUrl } = readSettings('PUBLIC_URL');
  return { from, publicUrl, seal: accountLinkSeal(secretKeysOf(config)) };
}

/** Warns if emails about accounts cannot be sent yet. */
export async function checkAccountEmails(emails: AccountEmailSettings | null, pool: Pool, log: Logger): Promise<void> {
  const mailbox = emails && parseMailbox(emails.from);
  if (mailbox === null || typeof mailbox === 'string') return;
  const holder = await findVerifiedHolder(pool, mailbox.domain).catch(() => 'unknown');
  if (holder === undefined) {
    log.warn({ domain: mailbox.domain }, 'no organization has verified the domain of SYSTEM_EMAIL_FROM');
  }
}
