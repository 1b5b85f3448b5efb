import { setTimeout as sleep } from 'node:timers/promises';
import { serveIsolatedDelivery } from '../../src/main/isolated-server.ts';

/** An isolated process that acts by the id of an email. */
serveIsolatedDelivery(async ({ id }) => {
  const [act = '', milliseconds] = id.split(' ');
  if (act === 'crash') process.kill(process.pid, 'SIGKILL');
  if (act === 'throw') throw new Error('the database is away');
  if (act === 'hang') for (;;);
  if (act === 'late-hang') {
    await sleep(2_000);
    for (;;);
  }
  if (milliseconds !== undefined) await sleep(Number(milliseconds));
  return [{ id, state: 'ended', status: 'sent' }];
});
