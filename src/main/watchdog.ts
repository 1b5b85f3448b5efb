import { Worker } from 'node:worker_threads';

const HANG_LIMIT_MS = 60_000;
/** The interval of the event loop's ticks and of the watchdog's checks, in milliseconds. */
const TICK_MS = 1_000;

/**
 * The code of the watchdog thread, which a blocked event loop does not stop. It counts only time in which the thread itself
 * ran, so that a suspended host or a stopped process does not count. It sends SIGKILL, because a blocked process runs no
 * signal handlers.
 */
const THREAD = `
  const { writeSync } = require('node:fs');
  const { performance } = require('node:perf_hooks');
  const { ticks, hangLimitMs, tickMs, name } = require('node:worker_threads').workerData;
  const counter = new Int32Array(ticks);
  let last = -1;
  let stalledMs = 0;
  let lookedAt = performance.now();
  setInterval(() => {
    const now = performance.now();
    const elapsedMs = Math.min(now - lookedAt, 2 * tickMs);
    lookedAt = now;
    const tick = Atomics.load(counter, 0);
    stalledMs = tick === last ? stalledMs + elapsedMs : 0;
    last = tick;
    if (stalledMs < hangLimitMs) return;
    const line = { level: 60, time: Date.now(), pid: process.pid, name, stalledMs, msg: 'event loop hangs, ending the process' };
    try {
      writeSync(1, JSON.stringify(line) + '\\n');
    } finally {
      process.kill(process.pid, 'SIGKILL');
    }
  }, tickMs);
`;

/**
 * Kills this process if its event loop is blocked for a minute, so that its supervisor restarts it. A blocked process would
 * keep its connections and tasks.
 * @param name the process name in log lines
 */
export function startWatchdog(name: string, hangLimitMs = HANG_LIMIT_MS, tickMs = TICK_MS): void {
  const ticks = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const counter = new Int32Array(ticks);
  setInterval(() => Atomics.add(counter, 0, 1), tickMs).unref();
  const thread = new Worker(THREAD, {
    eval: true,
    execArgv: [],
    workerData: { ticks, hangLimitMs, tickMs, name: `sendwright ${name}` },
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 },
  });
  // A failure of the watchdog must not end the process.
  thread.on('error', () => undefined);
  thread.unref();
}
