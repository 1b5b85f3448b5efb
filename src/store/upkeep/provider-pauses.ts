import { type Db, execute, executeOne, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** A provider account, or one sender of it, that refused to send or did not answer: messages wait until a probe succeeds. */
export interface ProviderPause {
  readonly provider: string;
  /**
   * Empty for the whole account; else the sender's domain, `organization:` or `hanging:` and its id, or `stream:` and its name
   * (email), or the id of the number (chat-app messages).
   */
  readonly sender: string;
  /** The provider's answer, as a sentence. */
  readonly reason: string;
  /** Time since it began. */
  readonly ageMs: number;
  /** Time until one message may be sent as a probe; not positive if it may now, since then. */
  readonly probeInMs: number;
}

/** The first probe comes after FIRST_PROBE_MS; the delay doubles with each failure up to MAX_PROBE_MS. */
const FIRST_PROBE_MS = 30_000;
const MAX_PROBE_MS = 600_000;
/** A pause ends after this time without a probe, because nothing is sent through the account. */
const ABANDONED = `interval '24 hours'`;

export function readPauses(db: Db): Promise<ProviderPause[]> {
  return queryRows(db, {
    name: 'read_provider_pauses',
    text: `SELECT provider, sender, reason,
                  (extract(epoch FROM clock_timestamp() - opened_at) * 1000)::float8 AS "ageMs",
                  (extract(epoch FROM next_probe_at - clock_timestamp()) * 1000)::float8 AS "probeInMs"
           FROM provider_pauses WHERE next_probe_at > now() - ${ABANDONED} ORDER BY provider, sender`,
  });
}

/** Pauses accounts; those that are paused already get the latest reason. */
export async function openPauses(
  db: Db,
  pauses: readonly Pick<ProviderPause, 'provider' | 'sender' | 'reason'>[],
): Promise<void> {
  await execute(db, {
    name: 'open_provider_pauses',
    text: `INSERT INTO provider_pauses AS pause (provider, sender, reason, next_probe_at)
           SELECT DISTINCT ON (provider, sender) provider, sender, reason, now() + make_interval(secs => $4 / 1000.0)
           FROM unnest($1::text[], $2::text[], $3::text[]) AS input(provider, sender, reason) ORDER BY provider, sender
           ON CONFLICT (provider, sender) DO UPDATE SET
             reason        = EXCLUDED.reason,
             opened_at     = CASE WHEN ${IS_ABANDONED} THEN EXCLUDED.opened_at ELSE pause.opened_at END,
             probes        = CASE WHEN ${IS_ABANDONED} THEN 0 ELSE pause.probes END,
             next_probe_at = CASE WHEN ${IS_ABANDONED} THEN EXCLUDED.next_probe_at ELSE pause.next_probe_at END`,
    values: [...columns(pauses, 'provider', 'sender', 'reason'), FIRST_PROBE_MS],
  });
}

const IS_ABANDONED = `pause.next_probe_at <= now() - ${ABANDONED}`;

/** Reserves the next probe of a paused account. @returns true if the caller may send one message; only one worker at a time may */
export function takeProbe(db: Db, { provider, sender }: ProviderPause): Promise<boolean> {
  return executeOne(db, {
    name: 'take_provider_probe',
    text: `UPDATE provider_pauses
           SET probes = probes + 1,
               next_probe_at = clock_timestamp() + make_interval(secs => least($3 * 2.0 ^ least(probes + 1, 20), $4) / 1000.0)
           WHERE provider = $1 AND sender = $2 AND next_probe_at <= clock_timestamp()`,
    values: [provider, sender, FIRST_PROBE_MS, MAX_PROBE_MS],
  });
}

/** Deletes pauses of accounts or senders that work again. */
export async function closePauses(
  db: Db,
  pauses: readonly Pick<ProviderPause, 'provider' | 'sender'>[],
): Promise<void> {
  await execute(db, {
    name: 'close_provider_pauses',
    text: `DELETE FROM provider_pauses
           WHERE (provider, sender) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
    values: columns(pauses, 'provider', 'sender'),
  });
}

/** Ends the pauses of whole accounts whose reason begins with a text. */
export async function closePausesOfReason(db: Db, providers: readonly string[], reasonStart: string): Promise<void> {
  await execute(db, {
    name: 'close_provider_pauses_of_reason',
    text: `DELETE FROM provider_pauses WHERE provider = ANY ($1) AND sender = '' AND starts_with(reason, $2)`,
    values: [providers, reasonStart],
  });
}
