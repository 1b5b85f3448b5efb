import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort, { portNumbers } from 'get-port';
import { type Lock, tryLock } from './lock.ts';

const LOWEST_UNPRIVILEGED = 1_024;
const HIGHEST = 65_535;
/** How far up from the wanted port to look before any free one will do. */
const REACH = 100;
/** Below what the systems we know give to outgoing connections, so that none of those can take a port of ours. */
const LOWEST_OWN = 10_000;
const HIGHEST_OWN = 30_000;
const PER_HOME = 10;

/** Chooses ports, and keeps other homes of this user from choosing them too until they are in use. */
export interface Ports {
  /**
   * The wanted port if it is free, else the next free one above it, else any. Never one that was given away a moment ago.
   * @param wanted 0 for any
   */
  readonly choose: (wanted: number) => Promise<number>;
  /** Gives up what was chosen; what is in use by then is seen to be taken without our word. */
  readonly release: () => Promise<void>;
}

/** Where this user's processes tell each other what they have chosen. */
const FOLDER = join(tmpdir(), `sendwright-ports-${process.getuid?.() ?? 0}`);

/** @param folder of the notes about what is chosen; made if needed */
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
  if (wanted === 0) return {};
  if (wanted < LOWEST_UNPRIVILEGED) return { port: wanted };
  return { port: portNumbers(wanted, Math.min(wanted + REACH, HIGHEST)) };
}

/**
 * Ports to try first for the parts of one home: always the same ones, so that addresses stay over restarts, and different
 * ones for homes side by side, most likely.
 * @param home absolute path
 */
export function homePorts(home: string): { postgres: number; temporal: number; simulator: number; smtp: number } {
  const slots = Math.floor((HIGHEST_OWN - LOWEST_OWN) / PER_HOME);
  const slot = createHash('sha256').update(home).digest().readUInt32BE() % slots;
  const first = LOWEST_OWN + slot * PER_HOME;
  return { postgres: first, temporal: first + 2, simulator: first + 4, smtp: first + 6 };
}

/** Whether a process ended because its port was taken between our choice and its start, judged by what it printed. */
export function sawPortTaken(output: string): boolean {
  return /EADDRINUSE|address already in use/i.test(output);
}
