import { writeFile } from 'node:fs/promises';
import { makeProviderLine } from '../delivery/line.ts';
import { deliverEmails } from '../delivery/email/deliver.ts';
import { openAttachmentStore } from './wiring/attachment-store.ts';
import { openPool } from './wiring/database.ts';
import { openRecorder } from './wiring/recorder.ts';
import { makeEmailDeps } from './wiring/email-deps.ts';
import { readSettings } from './env.ts';
import { serveIsolatedDelivery } from './isolated-server.ts';
import { makeLog } from './process.ts';
import { startWatchdog } from './watchdog.ts';

/** The isolated process of a worker. It delivers emails that may have crashed a worker. */
const config = readSettings('DATABASE_URL', 'SECRET_KEY');
// If memory is short, the kernel should kill this process and not the worker.
await writeFile('/proc/self/oom_score_adj', '1000').catch(() => undefined);
const log = makeLog('worker', config.LOG_LEVEL).child({ isolated: true });
const pool = openPool(config, log, 'worker isolated', 4);
const { recorder } = openRecorder(config, log, 'worker isolated results', 1);
startWatchdog('worker isolated');
const stopping = new AbortController();
process.on('disconnect', () => stopping.abort());
const files = await openAttachmentStore(config);
const line = makeProviderLine();
const deps = makeEmailDeps(config, { pool, recorder, line, stopping: stopping.signal, files, log });

serveIsolatedDelivery((member) => deliverEmails(deps, [member]), line.end);
