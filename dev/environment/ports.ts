import { createHash, randomInt } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort, { portNumbers } from 'get-port';
import { type Lock, tryLock } from './lock.ts';

const LOWEST_UNPRIVILEGED_PORT = 1_024;
const HIGHEST_PORT = 65_535;
/** Number of ports above the preferred one that are tried before any free one. */
const MAX_TRIED_PORTS = 100;
/** Own ports are below the ephemeral ports of Linux and macOS, so that outgoing connections cannot use them. */
const LOWEST_OWN_PORT = 10_000;
const HIGHEST_OWN_PORT = 30_000;
const PORTS_PER_HOME = 10;

/** Chooses ports and reserves them against other homes of this user until they are in use. */
export interface Ports {
  /**
   * Returns the preferred port if it is free, otherwise the next free one above it, otherwise any free one.
   * @param wanted 0 for any port that outgoing connections do not use
   */
  readonly choose: (wanted: number) => Promise<number>;
  /** Ends the reservations. Ports in use are detected without them. */
  readonly release: () => Promise<void>;
}

/** The folder of the reservations of this user's processes. */
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
  if (wanted === 0)
    return { port: portNumbers(randomInt(LOWEST_OWN_PORT, HIGHEST_OWN_PORT - MAX_TRIED_PORTS), HIGHEST_OWN_PORT) };
  if (wanted < LOWEST_UNPRIVILEGED_PORT) return { port: wanted };
  return { port: portNumbers(wanted, Math.min(wanted + MAX_TRIED_PORTS, HIGHEST_PORT)) };
}

/**
 * Returns the preferred ports of a home. They are the same at each start, and most likely different for each home.
 * @param home absolute path
 */
export function homePorts(home: string): { postgres: number; temporal: number; simulator: number; smtp: number } {
  const slots = Math.floor((HIGHEST_OWN_PORT - LOWEST_OWN_PORT) / PORTS_PER_HOME);
  const slot = createHash('sha256').update(home).digest().readUInt32BE() % slots;
  const first = LOWEST_OWN_PORT + slot * PORTS_PER_HOME;
  return { postgres: first, temporal: first + 2, simulator: first + 4, smtp: first + 6 };
}

/** True if the output of a process shows that it ended because its port was in use. */
export function reportsPortInUse(output: string): boolean {
  return /EADDRINUSE|address already in use/i.test(output);
}
