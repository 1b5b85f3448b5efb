import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listMessages, type MessageFilters } from '../../src/store/messages/messages.ts';
import type { Db } from '../../src/store/postgres/pool.ts';
import { useDatabase } from '../support/database.ts';
import { explainEach, type PlanNode, readBy } from '../support/plans.ts';

const ROWS = 50_000;
const PAGE = 101;
const ORG = 'org_large';

const { pool } = await useDatabase(2);
await pool.query(
  `INSERT INTO chat_messages (id, org_id, number_id, "from", "to", country, type, content, status, created_at, last_event_at, error)
   SELECT 'wa_' || lpad(n::text, 26, '0'), CASE WHEN n % 10 = 0 THEN 'org_small' ELSE $2 END, 'num_1', '+12025550142',
          '+1416555' || lpad((n % 500)::text, 4, '0'), 'CA', 'text', '{"text":"Hi."}', status, at, at,
          CASE WHEN status = 'failed' THEN 'no' END
   FROM generate_series(1, $1::int) AS n,
        LATERAL (SELECT now() - n * interval '1 second' AS at, CASE WHEN n % 999 = 1 THEN 'failed' ELSE 'read' END AS status) AS made`,
  [ROWS, ORG],
);

const NONE: MessageFilters = { status: null, to: null, tags: [], created_after: null, created_before: null };
const FILTERS: Readonly<Record<string, Partial<MessageFilters>>> = {
  'without filters': {},
  'of a frequent status': { status: 'read' },
  'of a rare status': { status: 'failed' },
  'of a status that none has': { status: 'sent' },
  'to one number': { to: '+14165550007' },
  'to a number that none goes to': { to: '+14165559999' },
  'of the last seconds': { created_after: new Date(Date.now() - 30_000).toISOString() },
  'of before the first': { created_before: '2020-01-01T00:00:00.000Z' },
};

describe('a list of messages reads what it shows and no more', () => {
  // Without statistics, plans for values may be worse; Postgres gathers them within a minute.
  for (const [when, modes] of [
    ['before VACUUM', ['generic']],
    ['after VACUUM', ['generic', 'custom']],
  ] as const) {
    it(when, async () => {
      if (when === 'after VACUUM') await pool.query('VACUUM ANALYZE');
      const { rows } = await pool.query<{ at: string }>(`SELECT now() - interval '${ROWS / 2} seconds' AS at`);
      const middle = { created_at: rows[0]?.at ?? '', id: '' };
      const works = Object.entries(FILTERS).flatMap(([name, filters]) =>
        [null, middle].map(
          (from) =>
            [name, (db: Db) => listMessages(db, ORG, 'chatapp', { ...NONE, ...filters }, from, PAGE - 1)] as const,
        ),
      );
      const check = (steps: readonly PlanNode[], message: string) =>
        assert.ok(Math.max(...steps.map(readBy)) <= PAGE, message);
      await explainEach(pool, works, check, modes);
    });
  }
});
