import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServers } from '../../dev/production/servers.ts';
import { type Home, lockHome } from '../../dev/environment/home.ts';
import { makeParts, type Parts } from '../faults/parts.ts';
import { NO_PROGRESS, startDevServer } from '../faults/stack.ts';

/** Postgres and Temporal for one test, which may stop, copy and restart them. */
export interface OwnServers {
  readonly home: Home;
  readonly databaseUrl: string;
  /** Postgres's own database, as its superuser. */
  readonly adminUrl: string;
  readonly temporalAddress: string;
  readonly stop: () => Promise<void>;
}

/** True to run Temporal's full server on Postgres, as in production; `npm run compose:check` sets it. */
export const FULL = process.env['COMPOSE_CHECK'] === 'full';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** A folder for a home, readable for the account of Postgres. */
export async function makeHomeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-compose-'));
  await chmod(folder, 0o755);
  return folder;
}

/**
 * Starts both servers with the data in a folder.
 * @param folder is removed at the end, by `stop`
 */
export async function startOwnServers(folder: string): Promise<OwnServers> {
  const { home, release } = await lockHome(folder);
  const parts: Parts = makeParts(() => undefined);
  // Both servers have their own process groups and would outlive an interrupted run.
  const interrupt = () => void stop().finally(() => process.exit(130));
  for (const signal of SIGNALS) process.once(signal, interrupt);
  const stop = async () => {
    for (const signal of SIGNALS) process.off(signal, interrupt);
    await parts.stop();
    await release();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const servers = await startServers(home, parts, NO_PROGRESS, FULL);
    const temporalAddress = FULL ? servers.TEMPORAL_ADDRESS : await startDevServer(home, parts);
    return { home, databaseUrl: servers.DATABASE_URL, adminUrl: servers.adminUrl, temporalAddress, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
