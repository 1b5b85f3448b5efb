import { setTimeout as sleep } from 'node:timers/promises';
import type { PartName } from '../../src/main/dev-file.ts';
import type { Fault } from './fault.ts';

/** Without a worker, single emails arrive for this long, faster than the relay may start workflows. */
const AWAY_MS = 20_000;
const INTERVAL_MS = 25;
/** The backlog takes longer than moments to send. */
const LATENCY_MS = 500;
const DRAIN_TIMEOUT_MS = 60_000;

/** A process is killed while the backlog of an absent worker is sent. */
function killInDrain(part: PartName, name: string): Fault {
  return {
    what: `kill -9 of ${name} while the emails of 20 s without a worker are sent`,
    mix: { lines: 2, rest: 150, large: 0.1 },
    async inject({ stack, generator, random, expect, print }) {
      const began = new Date();
      const countQueued = async () => {
        const { rows } = await stack.pool.query<{ count: number }>(
          `SELECT count(*)::int FROM emails WHERE status = 'queued' AND created_at >= $1`,
          [began],
        );
        return rows[0]?.count ?? 0;
      };
      await stack.setBehaviour({ latency_ms: LATENCY_MS });
      const isFrozen = random.chance(0.5);
      const back = isFrozen ? stack.parts.freeze('worker', AWAY_MS) : stack.parts.stopFor('worker', AWAY_MS);
      for (const until = Date.now() + AWAY_MS; Date.now() < until;) {
        void generator.postOne(true);
        await sleep(INTERVAL_MS);
      }
      await back;
      const backlog = await countQueued();
      const killAt = backlog * random.between(0.2, 0.95);
      let left = backlog;
      for (const until = Date.now() + DRAIN_TIMEOUT_MS; left > killAt && Date.now() < until;) {
        await sleep(10);
        left = await countQueued();
      }
      stack.parts.kill(part);
      expect(left > 0 && left < backlog, `the backlog was being sent: ${left} of ${backlog} emails were left`);
      print(`  the worker was ${isFrozen ? 'frozen' : 'stopped'}; ${left} of ${backlog} emails were left at the kill`);
      await stack.parts.serving();
      await stack.setBehaviour({});
    },
  };
}

export const drains: Readonly<Record<string, Fault>> = {
  'drain-worker-kill': killInDrain('worker', 'the worker'),
  'drain-relay-kill': killInDrain('api', 'the API with the relay'),
  'drain-temporal-kill': killInDrain('temporal', 'Temporal'),
};
