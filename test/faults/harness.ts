import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { check, type Evidence, sentences, type Verdict } from './checker.ts';
import { gatherEvidence, type ProviderLedger, readProvider } from './evidence.ts';
import type { Fault } from './fault.ts';
import { makeGenerator, type SenderEntry, USUAL } from './generator.ts';
import { openLedger } from './ledger.ts';
import { makeRandom } from './random.ts';
import { type ReceiverEntry, startReceiver } from './receiver.ts';
import { type Stack, startStack } from './stack.ts';
import { makeTenant, type Tenant } from './tenant.ts';

export interface HarnessOptions {
  /** Seconds that something is frozen, away or broken. */
  readonly seconds: number;
  readonly minutes: number;
  readonly production: boolean;
  /** Share of the usual load. */
  readonly load?: number;
  readonly say: (line: string) => void;
}

/** What one run came to. */
export interface RunResult extends Omit<Verdict, 'waiting' | 'violations'> {
  readonly fault: string;
  readonly seed: number;
  /** Sentences; none when all is well. */
  readonly wrong: readonly string[];
  readonly lost: number;
  readonly twice: number;
  /** Milliseconds from the end of the fault, or from when a message was due if that was later, to its hand-over: the longest. */
  readonly handedOver: number;
  /** Milliseconds from the end of the fault, or of sending if that was later, until nothing waited any more. */
  readonly settled: number;
}

/** Milliseconds before and after the fault in which messages are sent. */
const LEAD_MS = [800, 2_500] as const;
const TAIL_MS = 1_500;
/** Until all is at its end: a call whose end nobody saw is asked about twice, a minute apart. */
const VERDICT_TIMEOUT_MS = 240_000;
const POLL_MS = 500;
const NAMES = { sender: 'sender.jsonl', receiver: 'receiver.jsonl' };

/** A stack on which things go wrong, one after the other. */
export interface Harness {
  /**
   * Lets a fault happen while messages are sent.
   * @returns when that is over; what came of it is known when all is at its end
   */
  readonly run: (name: string, fault: Fault, seed: number) => Promise<{ readonly result: Promise<RunResult> }>;
  readonly close: () => Promise<void>;
}

/** Starts a stack for faults that need nothing but the proxies `stack` names. */
export async function startHarness(options: HarnessOptions, stack: Fault['stack'] = {}): Promise<Harness> {
  const running = await startStack({ ...options, ...stack });
  const provider = readProvider(running.inbox);
  let run = 0;
  return {
    run: (name, fault, seed) => runOnce(running, provider, name, fault, ++run, seed, options),
    close: () => running.stop(),
  };
}

async function runOnce(
  stack: Stack,
  provider: ProviderLedger,
  name: string,
  fault: Fault,
  run: number,
  seed: number,
  { seconds, minutes, load = 1 }: HarnessOptions,
): Promise<{ result: Promise<RunResult> }> {
  const folder = join(stack.folder, `run-${run}`);
  await mkdir(folder);
  const paths = { sender: join(folder, NAMES.sender), receiver: join(folder, NAMES.receiver) };
  const sent = await openLedger<SenderEntry>(paths.sender);
  const received = await openLedger<ReceiverEntry>(paths.receiver);
  const receiver = await startReceiver(received);
  const close = async () => {
    await receiver.close();
    await Promise.all([sent.close(), received.close()]);
  };
  try {
    const random = makeRandom(seed);
    const tenant = await makeTenant(stack, run, receiver.url);
    const mix = { ...USUAL, ...fault.mix };
    const generator = makeGenerator(stack, tenant, run, sent, random, { ...mix, rest: mix.rest / load });
    const demanded: string[] = [];
    const demand = (holds: boolean, sentence: string) => {
      if (!holds) demanded.push(`demanded: ${sentence}`);
    };
    generator.start();
    await sleep(random.between(...LEAD_MS));
    await fault
      .happen({ stack, generator, receiver, random, lasts: seconds * 1_000, minutes, demand })
      .catch((error: unknown) => {
        demand(false, `it did not happen as it should: ${String(error)}`);
      });
    stack.restoreNetwork();
    const over = Date.now();
    await sleep(TAIL_MS);
    await generator.stop();
    await stack.parts.serving();
    await stack.setBehaviour({});
    const ended = Date.now();
    const result = awaitVerdict(stack, tenant, { ...paths, provider })
      .then(({ verdict, evidence }) => ({
        fault: name,
        seed,
        ...summary(verdict, demanded),
        handedOver: longestHandOver(evidence, over),
        settled: Date.now() - ended,
      }))
      .finally(close);
    return { result };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A verdict in figures and sentences. */
export function summary({ violations, waiting, ...counts }: Verdict, demanded: readonly string[]) {
  const wrong = [...demanded, ...waiting.map((one) => `waiting: ${one}`), ...sentences(violations)];
  return { ...counts, wrong, lost: violations.lost.length + waiting.length, twice: violations.twice.length };
}

/** Waits until nothing waits any more, or for too long; and compares. */
export async function awaitVerdict(
  stack: Pick<Stack, 'pool' | 'url' | 'temporalAddress'>,
  tenant: Tenant,
  ledgers: Parameters<typeof gatherEvidence>[2],
): Promise<{ verdict: Verdict; evidence: Evidence }> {
  const until = Date.now() + VERDICT_TIMEOUT_MS;
  for (;;) {
    const isLate = Date.now() > until;
    try {
      if (isLate || (await isCalm(stack, tenant))) {
        const evidence = await gatherEvidence(stack, tenant, ledgers);
        const verdict = check(evidence);
        // A report may have come meanwhile, whose event is on its way.
        if (isLate || (verdict.waiting.length === 0 && verdict.violations.missingWebhooks.length === 0))
          return { verdict, evidence };
      }
    } catch (error) {
      // The next fault may have begun.
      if (isLate) throw error;
    }
    await sleep(POLL_MS);
  }
}

/** Whether no message, no delivery and no workflow of one is open. */
async function isCalm(
  { pool, temporalAddress: address }: Pick<Stack, 'pool' | 'temporalAddress'>,
  { orgId }: Tenant,
): Promise<boolean> {
  const { rows } = await pool.query<{ calm: boolean }>(
    `SELECT NOT EXISTS (SELECT FROM emails WHERE org_id = $1 AND status IN ('queued', 'scheduled'))
        AND NOT EXISTS (SELECT FROM chat_messages WHERE org_id = $1 AND status = 'queued')
        AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE status = 'pending'
                          AND endpoint_id IN (SELECT id FROM webhook_endpoints WHERE org_id = $1)) AS calm`,
    [orgId],
  );
  if (rows[0]?.calm !== true) return false;
  const connection = await Connection.connect({ address });
  try {
    const open = `ExecutionStatus = 'Running' AND (OrgId = '${orgId}' OR OrgId IS NULL) AND WorkflowType IN ('deliverEmail', 'deliverGroup', 'deliverChat')`;
    return (await new Client({ connection }).workflow.count(open)).count === 0;
  } finally {
    await connection.close();
  }
}

function longestHandOver({ sender, provider }: Evidence, over: number): number {
  const waits = sender.flatMap((entry) => {
    if (entry.is !== 'accepted') return [];
    const from = Math.max(over, entry.due === null ? entry.at : Date.parse(entry.due));
    return entry.to.flatMap((to) => (provider.get(to)?.[0] ?? from) - from);
  });
  return waits.reduce((longest, wait) => Math.max(longest, wait), 0);
}
