import { Worker } from 'node:worker_threads';

/** Milliseconds without a turn of the event loop after which the process is ended. */
const HANG_LIMIT_MS = 60_000;
/** Milliseconds between two ticks of the event loop, and between two looks of the watchdog. */
const TICK_MS = 1_000;

/**
 * Runs in a thread of its own, so that it sees an event loop that hangs. It adds up only the time in which it ran itself:
 * a machine that was suspended, or a process that was stopped, has not hung when it resumes. Kills the process, because
 * a process that hangs runs no handlers.
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
 * Ends this process when its event loop has not turned for a minute, so that whoever supervises it starts it again: a
 * process that hangs keeps its connections, and would keep the tasks that it has taken.
 * @param name as in the log
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
  // Without a watchdog the process still works.
  thread.on('error', () => undefined);
  thread.unref();
}
