import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { check, type Evidence, sentences, type Verdict } from './checker.ts';
import { gatherEvidence, type ProviderLedger, readProvider } from './evidence.ts';
import type { Fault } from './fault.ts';
import { type Generator, makeGenerator, type SenderEntry, USUAL } from './generator.ts';
import { openLedger } from './ledger.ts';
import { makeRandom } from './random.ts';
import { type ReceiverEntry, startReceiver } from './receiver.ts';
import { type Stack, startStack } from './stack.ts';
import { makeTenant, type Tenant } from './tenant.ts';

export interface HarnessOptions {
  /** How long a part is frozen, stopped or broken. */
  readonly seconds: number;
  /** Duration of the long faults: a storm, and a blocked table. */
  readonly minutes: number;
  readonly production: boolean;
  /** Share of the usual load. */
  readonly load?: number;
  readonly print: (line: string) => void;
}

/** The result of one run. */
export interface RunResult extends Omit<Verdict, 'pending' | 'violations'> {
  readonly fault: string;
  readonly seed: number;
  /** Violations as sentences. */
  readonly wrong: readonly string[];
  readonly lost: number;
  readonly twice: number;
  /** The longest time from the end of the fault, or from when a message was due if later, until the provider had it, in ms. */
  readonly handedOver: number;
  /** Milliseconds from the end of the fault, or of sending if later, until all messages had ended. */
  readonly settled: number;
}

/** Milliseconds before and after the fault in which messages are sent. */
const TRAFFIC_BEFORE_MS = [800, 2_500] as const;
const TRAFFIC_AFTER_MS = 1_500;
/** Long: upkeep restarts the workflows that a fail-over made it forget when their messages are ten minutes late (docs/guarantees.md). */
const VERDICT_TIMEOUT_MS = 900_000;
const POLL_MS = 500;
/** Runs of a stack. The tenants of a run have its number, increased by this. */
const MAX_RUNS = 4_000;

/** A stack for faults, one after the other. */
export interface Harness {
  /**
   * Injects a fault while messages are sent.
   * @returns at the end of the fault; `result` resolves when all messages have ended
   */
  readonly run: (name: string, fault: Fault, seed: number) => Promise<{ readonly result: Promise<RunResult> }>;
  readonly close: () => Promise<void>;
}

/** Starts a stack for faults that need only the proxies of `stack`. */
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
  { seconds, minutes, load = 1, print }: HarnessOptions,
): Promise<{ result: Promise<RunResult> }> {
  const folder = join(stack.folder, `run-${run}`);
  await mkdir(folder);
  const paths = { sender: join(folder, 'sender.jsonl'), receiver: join(folder, 'receiver.jsonl') };
  const sent = await openLedger<SenderEntry>(paths.sender);
  const received = await openLedger<ReceiverEntry>(paths.receiver);
  const receiver = await startReceiver(received);
  const close = async () => {
    await receiver.close();
    await Promise.all([sent.close(), received.close()]);
  };
  try {
    const random = makeRandom(seed);
    const mix = { ...USUAL, ...fault.mix };
    const tenants: Tenant[] = [];
    const generators: Generator[] = [];
    const addTenant = async () => {
      const number = run + tenants.length * MAX_RUNS;
      const tenant = await makeTenant(stack, number, receiver.url);
      const generator = makeGenerator(stack, tenant, number, sent, random, { ...mix, rest: mix.rest / load });
      tenants.push(tenant);
      generators.push(generator);
      return { tenant, generator };
    };
    const { generator } = await addTenant();
    const unmet: string[] = [];
    const expect = (holds: boolean, sentence: string) => {
      if (!holds) unmet.push(`expected: ${sentence}`);
    };
    generator.start();
    await sleep(random.between(...TRAFFIC_BEFORE_MS));
    await fault
      .inject({ stack, generator, addTenant, receiver, random, durationMs: seconds * 1_000, minutes, expect, print })
      .catch((error: unknown) => {
        expect(false, `the fault could not be injected: ${String(error)}`);
      });
    stack.restoreNetwork();
    const over = Date.now();
    await sleep(TRAFFIC_AFTER_MS);
    await Promise.all(generators.map((each) => each.stop()));
    await stack.parts.serving();
    await stack.setBehaviour({});
    const ended = Date.now();
    const result = awaitVerdict(stack, tenants, { ...paths, provider })
      .then(({ verdict, evidence }) => ({
        fault: name,
        seed,
        ...summary(verdict, unmet),
        handedOver: maxSendDelayMs(evidence, over),
        settled: Date.now() - ended,
      }))
      .finally(close);
    return { result };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A verdict in counts and sentences. */
export function summary({ violations, pending, ...counts }: Verdict, unmet: readonly string[]) {
  const wrong = [...unmet, ...pending.map((one) => `pending: ${one}`), ...sentences(violations)];
  return { ...counts, wrong, lost: violations.lost.length + pending.length, twice: violations.twice.length };
}

/** Waits until all messages have ended, or for the timeout, and compares the records. */
export async function awaitVerdict(
  stack: Pick<Stack, 'pool' | 'url' | 'temporalAddress'>,
  tenants: readonly Tenant[],
  ledgers: Parameters<typeof gatherEvidence>[2],
): Promise<{ verdict: Verdict; evidence: Evidence }> {
  const until = Date.now() + VERDICT_TIMEOUT_MS;
  for (;;) {
    const isLate = Date.now() > until;
    try {
      if (isLate || (await isIdle(stack, tenants))) {
        const evidence = await gatherEvidence(stack, tenants, ledgers);
        const verdict = check(evidence);
        const { missingWebhooks, open } = verdict.violations;
        // The webhook of a late report may still be in flight.
        const isOver = [verdict.pending, missingWebhooks, open].every(({ length }) => length === 0);
        if (isLate || isOver) return { verdict, evidence };
      }
    } catch (error) {
      // The next fault may have begun.
      if (isLate) throw error;
    }
    await sleep(POLL_MS);
  }
}

/** Returns true if no message and no webhook delivery is open. */
async function isIdle({ pool }: Pick<Stack, 'pool'>, tenants: readonly Tenant[]): Promise<boolean> {
  const { rows } = await pool.query<{ idle: boolean }>(
    `SELECT NOT EXISTS (SELECT FROM emails WHERE org_id = ANY ($1) AND status IN ('queued', 'scheduled'))
        AND NOT EXISTS (SELECT FROM chat_messages WHERE org_id = ANY ($1) AND status = 'queued')
        AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE status = 'pending'
                          AND endpoint_id IN (SELECT id FROM webhook_endpoints WHERE org_id = ANY ($1))) AS idle`,
    [tenants.map(({ orgId }) => orgId)],
  );
  return rows[0]?.idle === true;
}

function maxSendDelayMs({ sender, provider }: Evidence, over: number): number {
  const waits = sender.flatMap((entry) => {
    if (entry.kind !== 'accepted') return [];
    const from = Math.max(over, entry.due === null ? entry.at : Date.parse(entry.due));
    return entry.to.flatMap((to) => (provider.get(to)?.[0] ?? from) - from);
  });
  return waits.reduce((longest, wait) => Math.max(longest, wait), 0);
}
