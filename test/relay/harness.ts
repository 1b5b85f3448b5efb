import { Writable } from 'node:stream';
import { after, afterEach, before } from 'node:test';
import type { WorkflowExecutionDescription, WorkflowHandle } from '@temporalio/client';
import { pino } from 'pino';
import { type Relay, type RelayDeps, startRelay } from '../../src/relay/relay.ts';
import { makeTemporalDispatcher } from '../../src/relay/temporal.ts';
import type { OutboxRow } from '../../src/store/outbox/outbox.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace, type TestNamespace } from '../support/temporal.ts';
import { silenceTemporal } from '../support/workflows.ts';

export const RETRY = { maximumAttempts: 16, initialInterval: 2_000, maximumInterval: 1_800_000 };

interface Line {
  level: number;
  msg: string;
  message?: string;
}

/** Starts relays with a scripted dispatch. Each test ends with its relays stopped and an empty outbox. */
export function useRelays(pool: Pool) {
  const relays: Relay[] = [];
  const pools: Pool[] = [];
  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await Promise.all(pools.splice(0).map((each) => each.end()));
    await pool.query('DELETE FROM outbox');
  });
  const rowsLeft = async () => {
    const { rows } = await pool.query<{ message_id: string; tries: number; retry_at: string | null }>(
      'SELECT message_id, tries, retry_at FROM outbox ORDER BY id',
    );
    return rows;
  };
  return {
    pools,
    rowsLeft,
    isEmpty: () => eventually('the outbox is empty', async () => (await rowsLeft()).length === 0),
    /** @param act what happens at a dispatch, before the row counts as dispatched */
    start: (act: (row: OutboxRow) => Promise<void> = async () => undefined, deps: Partial<RelayDeps> = {}) => {
      const rows: OutboxRow[] = [];
      const { startsPerSecond = 1_000_000 } = deps;
      const lines: Line[] = [];
      const out = new Writable({ write: (line, _, done) => done(void lines.push(JSON.parse(String(line)) as Line)) });
      const relay = startRelay({
        pool,
        log: pino({ level: 'info' }, out),
        dispatch: async (row) => {
          await act(row);
          rows.push(row);
          if (startsPerSecond < 10_000) await claim(pool, row);
        },
        startsPerSecond,
        ...deps,
      });
      relays.push(relay);
      return {
        ...relay,
        /** The dispatched rows, and their message ids. */
        rows,
        ids: () => rows.map(({ message_id }) => message_id),
        lines,
        warnings: () => lines.filter(({ level }) => level === 40),
      };
    },
  };
}

/** Leaves the trace of a worker that claims the messages of a workflow when it is started, but sends none. */
async function claim(pool: Pool, row: OutboxRow): Promise<void> {
  const ids = row.action === 'group' ? row.members.map(({ id }) => id) : [row.message_id];
  for (const table of ['emails', 'chat_messages'])
    await pool.query(`UPDATE ${table} SET look_at = now() + interval '1 hour' WHERE id = ANY ($1)`, [ids]);
}

/** A Temporal namespace and a dispatcher for the tests of a suite. */
export function useDispatcher() {
  let namespace: TestNamespace;
  let dispatch: (row: OutboxRow) => Promise<void>;
  before(async () => {
    silenceTemporal();
    namespace = await testNamespace();
    dispatch = makeTemporalDispatcher(namespace.client, RETRY);
  });
  after(() => namespace.close());
  return {
    namespace: () => namespace,
    dispatch: (row: OutboxRow) => dispatch(row),
    handleOf: ({ message_id }: Pick<OutboxRow, 'message_id'>) => namespace.client.workflow.getHandle(message_id),
    runOf: async ({ message_id }: OutboxRow) =>
      (await namespace.client.workflow.getHandle(message_id).describe()).runId,
  };
}

export function attributesOf({ typedSearchAttributes }: WorkflowExecutionDescription): Record<string, unknown> {
  return Object.fromEntries(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]));
}

/** The input and the signals in the history of a workflow, and the history as text. */
export async function readHistory(handle: WorkflowHandle) {
  const { events } = await handle.fetchHistory();
  const decode = (payload: { data?: Uint8Array | null } | undefined): unknown =>
    payload?.data ? JSON.parse(Buffer.from(payload.data).toString()) : undefined;
  const started = events?.[0]?.workflowExecutionStartedEventAttributes;
  const signals = (events ?? []).flatMap(({ workflowExecutionSignaledEventAttributes: signal }) =>
    signal ? [[signal.signalName ?? '', decode(signal.input?.payloads?.[0])] as [string, unknown]] : [],
  );
  return { input: decode(started?.input?.payloads?.[0]), signals, text: JSON.stringify(events) };
}
