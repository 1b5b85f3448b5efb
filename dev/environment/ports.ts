import { createHash, randomInt } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort, { portNumbers } from 'get-port';
import { type Lock, tryLock } from './lock.ts';

const LOWEST_UNPRIVILEGED = 1_024;
const HIGHEST = 65_535;
/** Ports above the preferred one that are tried before any free one. */
const REACH = 100;
/** Below the ephemeral ports of Linux and macOS, so outgoing connections cannot take them. */
const LOWEST_OWN = 10_000;
const HIGHEST_OWN = 30_000;
const PER_HOME = 10;

/** Chooses ports and reserves them against other homes of this user until they are in use. */
export interface Ports {
  /**
   * Returns the preferred port if it is free, else the next free one above it, else any.
   * @param wanted 0 for any that no outgoing connection can take
   */
  readonly choose: (wanted: number) => Promise<number>;
  /** Ends the reservations; ports in use are detected without them. */
  readonly release: () => Promise<void>;
}

/** The reservations of this user's processes. */
const FOLDER = join(tmpdir(), `sendwright-ports-${process.getuid?.() ?? 0}`);

export function makePorts(folder = FOLDER): Ports {
  const held: Lock[] = [];

  async function choose(wanted: number): Promise<number> {
    await mkdir(folder, { recursive: true });
    const exclude: number[] = [];
    for (;;) {
      const port = await getPort({ ...candidates(wanted), exclude });
      const lock = await tryLock(join(folder, `${port}.lock`));
      if ('release' in lock) {
        held.push(lock);
        return port;
      }
      exclude.push(port);
    }
  }

  return {
    choose,
    async release() {
      await Promise.all(held.splice(0).map((lock) => lock.release()));
    },
  };
}

function candidates(wanted: number): { port?: number | Iterable<number> } {
  if (wanted === 0) return { port: portNumbers(randomInt(LOWEST_OWN, HIGHEST_OWN - REACH), HIGHEST_OWN) };
  if (wanted < LOWEST_UNPRIVILEGED) return { port: wanted };
  return { port: portNumbers(wanted, Math.min(wanted + REACH, HIGHEST)) };
}

/**
 * Preferred ports of a home: constant over restarts, and most likely different for each home.
 * @param home absolute path
 */
export function homePorts(home: string): { postgres: number; temporal: number; simulator: number; smtp: number } {
  const slots = Math.floor((HIGHEST_OWN - LOWEST_OWN) / PER_HOME);
  const slot = createHash('sha256').update(home).digest().readUInt32BE() % slots;
  const first = LOWEST_OWN + slot * PER_HOME;
  return { postgres: first, temporal: first + 2, simulator: first + 4, smtp: first + 6 };
}

/** Whether a process ended because its port was taken, judged by its output. */
export function sawPortTaken(output: string): boolean {
  return /EADDRINUSE|address already in use/i.test(output);
}
