import { execFileSync } from 'node:child_process';
import { appendFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault, FaultContext } from './fault.ts';

/** The replica is behind by at least this time, and at most by twice as much, or longer until something can be forgotten. */
const LAG_MS = 1_000;
const MAX_LAG_MS = 20_000;
/** Emails that are due at the moment of the copy, so that many are sent in the time that is forgotten. */
const DUE = 300;
const DUE_IN_MS = 6_000;

/**
 * Postgres fails over to a replica that lags. Its cluster is copied while its processes stand still; later it is killed, and the copy
 * takes over on a new timeline, as a replica does when it is promoted. Nothing is accepted in between, since accepted messages would be
 * lost (docs/guarantees.md), and nothing is sent by SMTP or Meta, which cannot be asked.
 */
const lagging: Fault = {
  what: 'Postgres fails over to a replica that is 1 to 2 s behind',
  mix: { chats: 0, large: 0 },
  async inject({ stack, generator, random, print }) {
    const replica = `${stack.cluster}-replica`;
    const due = Date.now() + DUE_IN_MS;
    await stack.setBehaviour({ latency_ms: 300 });
    await generator.postBatch(DUE, true, DUE_IN_MS);
    await generator.postBatch(DUE, true);
    await generator.stop();
    await sleep(Math.max(0, due - Date.now() + random.between(-300, 1_200)));
    await stack.parts.freezeWhile('postgres', () => execFileSync('cp', ['-a', stack.cluster, replica]));
    const open = async () => {
      const { rows } = await stack.pool.query<{ count: number }>(
        `SELECT count(*)::int FROM emails WHERE status IN ('queued', 'scheduled')`,
      );
      return rows[0]?.count ?? 0;
    };
    const before = await open();
    await sleep(random.between(LAG_MS, 2 * LAG_MS));
    let after = await open();
    for (const until = Date.now() + MAX_LAG_MS; after === before && Date.now() < until; after = await open())
      await sleep(50);
    print(`  forgotten: about ${before - after} emails that were sent`);
    await stack.parts.stopFor('postgres', 0, async () => {
      await rm(stack.cluster, { recursive: true });
      await rename(replica, stack.cluster);
      await rm(join(stack.cluster, 'postmaster.pid'), { force: true });
      await appendFile(join(stack.cluster, 'postgresql.auto.conf'), `restore_command = '/bin/false'\n`);
      await writeFile(join(stack.cluster, 'recovery.signal'), '');
      // Postgres may run under another account.
      execFileSync('chown', ['--reference', stack.cluster, join(stack.cluster, 'recovery.signal')]);
    });
    // It serves reads before it is promoted.
    while (await isInRecovery(stack)) await sleep(100);
    // Its databases are in the same cluster, and it remembers what they have forgotten (docs/maintenance.md).
    stack.parts.kill('temporal');
    await stack.setBehaviour({});
  },
};

async function isInRecovery({ pool }: FaultContext['stack']): Promise<boolean> {
  const asking = pool.query<{ isInRecovery: boolean }>('SELECT pg_is_in_recovery() AS "isInRecovery"');
  // A connection from before may break only now.
  const answer = await asking.catch(() => undefined);
  return answer?.rows[0]?.isInRecovery !== false;
}

export const failOvers: Readonly<Record<string, Fault>> = { 'postgres-fails-over': lagging };
