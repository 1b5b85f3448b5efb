import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import type { Evidence, ApiMessage } from './checker.ts';
import type { SenderEntry } from './generator.ts';
import { readLedger } from './ledger.ts';
import type { ReceiverEntry } from './receiver.ts';
import type { Stack } from './stack.ts';
import type { Tenant } from './tenant.ts';

/** The ledger of the provider, which is read from the last position. */
export interface ProviderLedger {
  /** By recipient, when messages to it were accepted. */
  readonly read: () => ReadonlyMap<string, readonly number[]>;
}

const NEWLINE = 0x0a;
const TAB = 0x09;

/** Reads the simulator's inbox from its files: a line is the message's head as JSON, a tab, and the message. */
export function readProvider(folder: string): ProviderLedger {
  const received = new Map<string, number[]>();
  const offsets = new Map<string, number>();
  return {
    read() {
      for (const name of readdirSync(folder).sort()) {
        const bytes = readFrom(join(folder, name), offsets.get(name) ?? 0);
        let start = 0;
        for (let end; (end = bytes.indexOf(NEWLINE, start)) >= 0; start = end + 1) {
          const line = bytes.subarray(start, end);
          const { recipients, received_at: at } = JSON.parse(line.toString('utf8', 0, line.indexOf(TAB))) as {
            recipients: string[];
            received_at: number;
          };
          for (const to of recipients) received.set(to, [...(received.get(to) ?? []), at]);
        }
        offsets.set(name, (offsets.get(name) ?? 0) + start);
      }
      return received;
    },
  };
}

function readFrom(path: string, offset: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - offset));
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset));
  } finally {
    closeSync(file);
  }
}

/** Gathers the records of all parties about the messages of tenants. */
export async function gatherEvidence(
  stack: Pick<Stack, 'pool' | 'url' | 'temporalAddress'>,
  tenants: readonly Tenant[],
  ledgers: { readonly sender: string; readonly receiver: string; readonly provider: ProviderLedger },
): Promise<Evidence> {
  const orgIds = tenants.map(({ orgId }) => orgId);
  const { rows: events } = await stack.pool.query<{ id: string; type: string; message: string }>(
    `SELECT event.id, event.type, email_id AS message FROM email_events AS event JOIN emails ON emails.id = email_id WHERE org_id = ANY ($1)
     UNION ALL
     SELECT event.id, event.type, message_id FROM chat_events AS event JOIN chat_messages AS chat ON chat.id = message_id
     WHERE org_id = ANY ($1)`,
    [orgIds],
  );
  const { rows: attempts } = await stack.pool.query<{ message_id: string; count: number }>(
    `SELECT message_id, count(*)::int AS count FROM attempts
     WHERE outcome IN ('risked', 'lost') AND message_id IN (
       SELECT id FROM emails WHERE org_id = ANY ($1) UNION ALL SELECT id FROM chat_messages WHERE org_id = ANY ($1)
     ) GROUP BY message_id`,
    [orgIds],
  );
  const { rows: failed } = await stack.pool.query<{ id: string; outcome: string | null; attempted: boolean }>(
    `SELECT message.id, (SELECT outcome FROM attempts WHERE message_id = message.id ORDER BY n DESC LIMIT 1),
            EXISTS (SELECT FROM attempts WHERE message_id = message.id AND handed_over IS DISTINCT FROM false) AS attempted
     FROM (
       SELECT id FROM emails WHERE org_id = ANY ($1) AND status = 'failed'
       UNION ALL SELECT id FROM chat_messages WHERE org_id = ANY ($1) AND status = 'failed'
     ) AS message`,
    [orgIds],
  );
  const idsOf = (rows: readonly { id: string }[]) => new Set(rows.map(({ id }) => id));
  const lists = tenants.flatMap((tenant) => [list(stack, tenant, 'emails'), list(stack, tenant, 'chatapp')]);
  return {
    sender: readLedger<SenderEntry>(ledgers.sender),
    api: (await Promise.all(lists)).flat(),
    provider: ledgers.provider.read(),
    ambiguous: new Map(attempts.map(({ message_id, count }) => [message_id, count])),
    unresolved: idsOf(failed.filter(({ outcome }) => outcome === 'unknown')),
    unattempted: idsOf(failed.filter(({ attempted }) => !attempted)),
    openWorkflows: await findOpenWorkflows(stack.temporalAddress, orgIds),
    events,
    webhooks: new Set(readLedger<ReceiverEntry>(ledgers.receiver).map(({ id }) => id)),
  };
}

/**
 * Returns the ids of open workflows that deliver messages of these organizations, or of several. Temporal's list may be outdated, so
 * each is looked up.
 */
async function findOpenWorkflows(address: string, orgIds: readonly string[]): Promise<string[]> {
  const connection = await Connection.connect({ address });
  try {
    const { workflow } = new Client({ connection });
    const owners = orgIds.map((id) => `'${id}'`).join(', ');
    const types = `'deliverEmail', 'deliverGroup', 'deliverChat', 'deliverSms'`;
    const query = `ExecutionStatus = 'Running' AND (OrgId IN (${owners}) OR OrgId IS NULL) AND WorkflowType IN (${types})`;
    const open: string[] = [];
    for await (const { workflowId, runId } of workflow.list({ query })) {
      const run = await workflow.getHandle(workflowId, runId).describe().catch(ignoreForgotten);
      if (run?.status.name === 'RUNNING') open.push(workflowId);
    }
    return open;
  } finally {
    await connection.close();
  }
}

/** Temporal's list may contain workflows that a fail-over of its database has made it forget. */
function ignoreForgotten(error: unknown): undefined {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** All messages that the API lists. */
async function list(
  { url }: Pick<Stack, 'url'>,
  { headers }: Tenant,
  name: 'emails' | 'chatapp',
): Promise<ApiMessage[]> {
  const all: ApiMessage[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const answer = await fetch(`${url}/v1/${name}?limit=100${query}`, { headers });
    if (!answer.ok) throw new Error(`the API does not list ${name}: ${answer.status} ${await answer.text()}`);
    const page = (await answer.json()) as { next_cursor: string | null } & Record<string, Listed[]>;
    const items = page[name === 'emails' ? name : 'messages'] ?? [];
    for (const { id, batch_id = null, to, status } of items)
      all.push({ id, batch_id, to: [to].flat()[0] ?? '', status });
    cursor = page.next_cursor;
  }
  return all;
}

interface Listed {
  readonly id: string;
  readonly batch_id?: string | null;
  readonly to: string | readonly string[];
  readonly status: string;
}
