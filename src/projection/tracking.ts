import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { BURST_MS, isScan, SCAN_WITHIN_MS } from '../domain/email/machines.ts';
import { addressees, recipients } from '../domain/email/outgoing.ts';
import type { TrackedEmail } from '../domain/email/tracked-links.ts';
import { findTrackedEmails } from '../store/emails/tracked.ts';
import { gather } from '../store/postgres/gather.ts';
import type { Pool } from '../store/postgres/pool.ts';
import { type RequestedChange, projectChanges } from './emails.ts';

/** A request for the image or a link of an email. */
export interface TrackingHit extends TrackedEmail {
  /** For a click: the target of the link. */
  readonly url?: string;
  readonly isByMachine: boolean;
}

/** Records hits in the background, so that responses do not depend on the database. */
interface TrackingRecorder {
  readonly record: (hit: TrackingHit) => void;
  /** Records held hits. Resolves when all hits are written or have failed. */
  readonly flush: () => Promise<void>;
}

interface RecorderDeps {
  readonly pool: Pool;
  /** Called after commits that may have enqueued webhooks. */
  readonly wakeRelay: () => void;
  readonly log: Pick<Logger, 'warn'>;
  readonly burstMs?: number;
}

const MAX_HITS_PER_TRANSACTION = 200;
/** Limits memory while the database is slow: hits beyond it are not recorded. */
const MAX_PENDING = 10_000;
/** Recorded hits that this process remembers, so that repeated requests reach no database. */
const MAX_REMEMBERED = 50_000;

/**
 * Records opens and clicks once each: by recipient, link, and whether a person or a machine requested it. Hits just after the
 * hand-over are held for the length of a burst, which shows whether a scanner follows the links. Only the hits that this process
 * receives are compared.
 */
export function makeTrackingRecorder({ pool, wakeRelay, log, burstMs = BURST_MS }: RecorderDeps): TrackingRecorder {
  const remembered = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  const bursts = new Map<string, { readonly hits: TrackingHit[]; readonly timer: NodeJS.Timeout }>();
  const writing = new Set<Promise<void>>();
  let held = 0;
  const write = gather(async (hits: readonly TrackingHit[]) => {
    const recorded = await projectHits(pool, hits);
    wakeRelay();
    return recorded;
  }, MAX_HITS_PER_TRANSACTION);

  const enqueue = (hit: TrackingHit): void => {
    const key = `${hit.emailId} ${keyOf(hit)}`;
    if (remembered.has(key)) return;
    remembered.set(key, true);
    const written = write(hit)
      .then(({ isByMachine }) => {
        // A person's later request is another hit.
        if (isByMachine !== hit.isByMachine) remembered.delete(key);
      })
      .catch((error: unknown) => {
        remembered.delete(key);
        log.warn({ err: error, email: hit.emailId }, 'open or click not recorded');
      });
    writing.add(written);
    void written.finally(() => writing.delete(written));
  };

  const endBurst = (key: string): void => {
    const burst = bursts.get(key);
    if (!burst) return;
    clearTimeout(burst.timer);
    bursts.delete(key);
    held -= burst.hits.length;
    const isByMachine = isScan(burst.hits.flatMap(({ url }) => url ?? []));
    for (const hit of burst.hits) enqueue(isByMachine ? { ...hit, isByMachine } : hit);
  };

  return {
    record(hit) {
      if (held + writing.size >= MAX_PENDING) {
        log.warn({ email: hit.emailId }, 'open or click not recorded: too many are pending');
        return;
      }
      if (Date.now() - hit.sentAt * 1_000 > SCAN_WITHIN_MS) {
        enqueue(hit);
        return;
      }
      const key = `${hit.emailId} ${hit.recipient ?? ''}`;
      const burst = bursts.get(key) ?? { hits: [], timer: setTimeout(() => endBurst(key), burstMs).unref() };
      bursts.set(key, burst);
      if (burst.hits.some((other) => keyOf(other) === keyOf(hit))) return;
      burst.hits.push(hit);
      held++;
    },
    async flush() {
      for (const key of bursts.keys()) endBurst(key);
      await Promise.all(writing);
    },
  };
}

/** Identifies a hit among those of its email. Links may be longer than an index takes. */
function keyOf({ recipient, url, isByMachine }: TrackingHit): string {
  const link = url === undefined ? [] : [hash('sha256', url, 'base64url')];
  return [
    'tracked',
    url === undefined ? 'open' : 'click',
    recipient ?? '',
    isByMachine ? 'machine' : 'person',
    ...link,
  ].join(' ');
}

/**
 * Applies hits to their emails; those of emails that no longer exist change nothing. While no server has accepted an email, its
 * hits come from a content filter that examines it before the server replies, and count as automatic: the server may still refuse
 * the email for now, and an email or copy that has left `queued` is not sent again.
 * @returns the hits as they were recorded
 */
async function projectHits(pool: Pool, hits: readonly TrackingHit[]): Promise<TrackingHit[]> {
  // Read without a lock: an email or copy that was accepted stays so.
  const rows = await findTrackedEmails(pool, [...new Set(hits.map(({ emailId }) => emailId))]);
  const emails = new Map(rows.map((email) => [email.id, { ...email, all: recipients(addressees(email)) }]));
  const recipientOf = ({ emailId, recipient: position }: TrackingHit): string | undefined =>
    position === null ? undefined : emails.get(emailId)?.all[position]?.address.toLowerCase();
  const recorded = hits.map((hit): TrackingHit => {
    const email = emails.get(hit.emailId);
    const mayBeAccepted = email?.copies?.[recipientOf(hit) ?? ''] ?? email?.may_be_accepted;
    return { ...hit, isByMachine: hit.isByMachine || mayBeAccepted === false };
  });
  const changes = recorded.map((hit): RequestedChange => {
    const { emailId: id, url: link, isByMachine } = hit;
    const recipient = recipientOf(hit);
    const input = {
      id,
      dedupe_key: keyOf(hit),
      ...(recipient !== undefined && { recipient }),
      ...(link !== undefined && { link }),
    };
    const change = link === undefined ? 'opened' : 'clicked';
    return { change: isByMachine ? `${change}_by_machine` : change, input };
  });
  await projectChanges(pool, changes);
  return recorded;
}
