import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.ts';

/** The path in Debian's package; LIBFAKETIME names another one. */
const LIBRARY =
  process.env['LIBFAKETIME'] ??
  `/usr/lib/${process.arch === 'x64' ? 'x86_64' : 'aarch64'}-linux-gnu/faketime/libfaketimeMT.so.1`;

/** The time of day of one process is wrong; its monotonic clock is not. */
function skewClock(name: 'api' | 'worker', minutes: number): Fault {
  const FAKETIME = `${minutes > 0 ? '+' : ''}${minutes}m`;
  const env = { LD_PRELOAD: LIBRARY, FAKETIME, FAKETIME_DONT_FAKE_MONOTONIC: '1', DONT_FAKE_MONOTONIC: '1' };
  return {
    what: `clock of the ${name} ${FAKETIME}`,
    stack: { env: { [name]: env } },
    inject: ({ durationMs }) => sleep(durationMs),
    missing: () => (existsSync(LIBRARY) ? undefined : 'libfaketime is not installed'),
  };
}

export const clocks: Readonly<Record<string, Fault>> = {
  'clock-api-ahead': skewClock('api', 10),
  'clock-api-behind': skewClock('api', -10),
  'clock-worker-ahead': skewClock('worker', 10),
  'clock-worker-behind': skewClock('worker', -10),
};
