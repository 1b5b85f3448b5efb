/** Emails of one organization that are counted concurrently: one holds the lock, the others are in transit. */
const MAX_CONCURRENT_EMAILS = 4;
/** Organizations that are remembered to have a quota. */
const MAX_ORGANIZATIONS = 10_000;

/**
 * Emails of an organization with a quota are counted one after the other, each until its commit. Those with files, which
 * are stored singly, wait here without a database connection, so that a burst of them leaves connections to others.
 */
export interface QuotaQueue {
  /** Runs `work` in turn, or immediately for an organization that is not known to have a quota. */
  readonly run: <T>(orgId: string, work: () => Promise<T>) => Promise<T>;
  /** Records whether the last email of an organization was counted against a quota. */
  readonly note: (orgId: string, counted: boolean) => void;
}

interface Line {
  inside: number;
  readonly waiting: (() => void)[];
}

export function makeQuotaQueue(): QuotaQueue {
  const counted = new Set<string>();
  const lines = new Map<string, Line>();

  return {
    async run(orgId, work) {
      if (!counted.has(orgId)) return work();
      const line = lines.get(orgId) ?? { inside: 0, waiting: [] };
      lines.set(orgId, line);
      if (line.inside < MAX_CONCURRENT_EMAILS) line.inside++;
      else await new Promise<void>((resolve) => line.waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = line.waiting.shift();
        if (next) next();
        else if (--line.inside === 0) lines.delete(orgId);
      }
    },
    note(orgId, isCounted) {
      if (!isCounted) counted.delete(orgId);
      else if (counted.size < MAX_ORGANIZATIONS) counted.add(orgId);
    },
  };
}
