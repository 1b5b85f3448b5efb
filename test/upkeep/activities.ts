import { pino } from 'pino';
import { makeUpkeepActivities, type UpkeepActivities } from '../../activities/upkeep.ts';
import type { FileStore } from '../../src/store/files/file-store.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';
import type { UpkeepStep } from '../../src/upkeep/task.ts';
import { fakeWorkflows } from './workflows.ts';
import { contents } from '../support/contents.ts';

/** The upkeep activities without providers. @param log receives the log lines */
export function upkeepActivities(pool: Pool, files: FileStore, log: string[] = []): UpkeepActivities {
  return makeUpkeepActivities({
    pool,
    files,
    contents,
    bodyRetentionDays: 7,
    emailRetentionDays: 0,
    requestLogDays: 7,
    askPostmark: undefined,
    removeFromProvider: undefined,
    removeFromPostmark: undefined,
    providerOf: () => {
      throw new Error('no chat-app message is stuck');
    },
    workflows: fakeWorkflows().workflows,
    lookUp: { provider: 'postmark', canBeAsked: true },
    log: pino({ level: 'info' }, { write: (line: string) => log.push(line) }),
  });
}

export async function runAllSteps(step: (from: string | null) => Promise<UpkeepStep>): Promise<number> {
  let done = 0;
  let from: string | null = null;
  do {
    const result = await step(from);
    done += result.done;
    from = result.next;
  } while (from !== null);
  return done;
}
