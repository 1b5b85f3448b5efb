import { type Counts, STATES } from '../../src/domain/statistics.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { readSeries } from '../../src/store/statistics/series.ts';

/** The events that prove a state, written out here so that the table of the source is checked. */
const PROOFS: Partial<Record<keyof Counts, readonly string[]>> = {
  sent: ['sent', 'delivery_delayed', 'delivered', 'opened', 'clicked', 'bounced', 'complained'],
  delivered: ['delivered', 'opened', 'clicked'],
  delayed: ['delivery_delayed'],
  opened: ['opened', 'clicked'],
};

/** By dimension, hour or day, and key: the counts in the order of STATES. */
export type Figures = Record<string, readonly number[]>;

interface Row {
  readonly created_at: string;
  readonly from: string;
  readonly key_id: string | null;
  readonly batch_id: string | null;
  readonly tags: readonly { name: string; value: string }[];
  readonly reason: string | null;
  readonly types: readonly string[];
}

/** Counts an organization's emails by their rows and timelines. */
export async function countEmails(db: Db, orgId: string): Promise<Figures> {
  const { rows } = await db.query<Row>(
    `SELECT created_at, "from", key_id, batch_id, tags,
            (SELECT min(detail->>'bounce_reason') FROM email_events WHERE email_id = email.id) AS reason,
            ARRAY(SELECT substr(type, 7) FROM email_events WHERE email_id = email.id AND detail->'machine' IS NULL) AS types
     FROM emails AS email WHERE org_id = $1`,
    [orgId],
  );
  const figures: Record<string, number[]> = {};
  for (const { created_at: at, from, key_id: key, batch_id: batch, tags, reason, types } of rows) {
    const sides = [
      ['all', 'all'],
      ['domain', from.slice(from.indexOf('@') + 1)],
      ['key', key],
      ['batch', batch],
      ['bounce_reason', reason],
      ...tags.map(({ name, value }) => [`tag:${name}`, value] as const),
    ] as const;
    const reached = STATES.map((state) =>
      state === 'accepted' || (PROOFS[state] ?? [state]).some((type) => types.includes(type)) ? 1 : 0,
    );
    for (const [step, begin] of [
      ['hour', `${at.slice(0, 13)}:00:00.000Z`],
      ['day', `${at.slice(0, 10)}T00:00:00.000Z`],
    ]) {
      for (const [dimension, name] of sides) {
        if (name === null) continue;
        const counts = (figures[`${dimension} ${step} ${begin} ${name}`] ??= STATES.map(() => 0));
        for (const [index, one] of reached.entries()) counts[index] = (counts[index] ?? 0) + one;
      }
    }
  }
  return figures;
}

const EVER = { from: new Date('2020-01-01T00:00:00Z'), to: new Date('2100-01-01T00:00:00Z') };

/** The same, as the statistics have it. */
export async function readFigures(db: Db, orgId: string, tagNames: readonly string[]): Promise<Figures> {
  const figures: Record<string, number[]> = {};
  const dimensions = ['all', 'domain', 'key', 'batch', 'bounce_reason', ...tagNames.map((name) => `tag:${name}`)];
  for (const dimension of dimensions) {
    for (const step of ['hour', 'day'] as const) {
      const filter = { channel: 'email', ...EVER, step, dimension, key: null } as const;
      for (const { key, points } of await readSeries(db, orgId, filter, 1_000_000)) {
        for (const point of points) {
          figures[`${dimension} ${step} ${point.at} ${key}`] = STATES.map((state) => point[state]);
        }
      }
    }
  }
  return figures;
}
