import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { deliverEmails } from '../../src/delivery/email/deliver.ts';
import type { OutgoingEmail } from '../../src/domain/email/outgoing.ts';
import { serveIsolatedDelivery } from '../../src/main/isolated-server.ts';
import { makeIsolation } from '../../src/main/isolation.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { harness, ScriptedProvider } from './harness.ts';

/**
 * A worker whose provider kills its process for one email: `killing-worker.ts <database> <organization> <ids>` delivers
 * emails once, as an activity does; `isolated` in place of the ids makes it the isolated process of such a worker.
 */
const [databaseUrl = '', orgId = '', ...ids] = process.argv.slice(2);
const pool = makePool(databaseUrl, 'killing worker', 5, () => undefined);

class KillingProvider extends ScriptedProvider {
  override async send(emails: readonly OutgoingEmail[], call: string) {
    if (emails.some(({ subject }) => subject === 'poison')) process.kill(process.pid, 'SIGKILL');
    return super.send(emails, call);
  }
}

// The provider does not have a call that ended its worker; its first "not found" counts.
const { deps, lines } = harness(pool, orgId, [new KillingProvider()], { confirmNotFoundAfterMs: -1 });

if (ids[0] === 'isolated') {
  serveIsolatedDelivery((member) => deliverEmails(deps, [member]));
} else {
  const start = () => {
    const script = fileURLToPath(import.meta.url);
    return fork(script, [databaseUrl, orgId, 'isolated'], { execArgv: process.execArgv, serialization: 'advanced' });
  };
  const isolation = makeIsolation(start, deps.log);
  const results = await deliverEmails(
    { ...deps, isolation },
    ids.map((id) => ({ id, version: 0 })),
  );
  isolation.stop();
  process.send?.({ results, lines });
  await pool.end();
  process.disconnect();
}
