import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { acceptBatch } from '../../src/intake/batches.ts';
import { acceptEmail, gatherEmails, noLimits, PLAIN_REQUEST } from '../../src/intake/emails.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { useDatabase } from '../support/database.ts';
import { lockTable } from '../support/locks.ts';
import { SECRET_KEY } from '../support/secret-key.ts';

/** As many connections as an API has. */
const { pool } = await useDatabase(20);
const deps = {
  pool,
  wakeRelay: () => undefined,
  withFiles: async () => assert.fail('there are no files'),
  storeEmail: gatherEmails(pool),
  contents: makeEmailContents(SECRET_KEY),
  limits: noLimits(),
  sharesWorkflows: true,
};

async function organizationWith(domain: string) {
  const { id: orgId } = await createOrganization(pool, domain);
  await registerDomainForOperator(pool, orgId, domain, true);
  const email = { ...PLAIN_REQUEST, from: `a@${domain}`, to: ['b@example.net'], subject: 'Hello', text: 'Hi' };
  return { caller: { orgId, domainIds: null }, email };
}

test('twenty batches of an organization leave connections to others', async (t) => {
  const [busy, other] = [await organizationWith('busy.example'), await organizationWith('other.example')];
  const unlock = await lockTable(t, pool, 'batches', 'EXCLUSIVE');
  const batches = Promise.allSettled(Array.from({ length: 20 }, () => acceptBatch(deps, busy.caller, [busy.email])));
  await sleep(200);
  const accepting = acceptEmail(deps, other.caller, other.email);
  const accepted = await Promise.race([accepting, sleep(1_000, undefined)]);
  await unlock();
  const results = await batches;
  await accepting;
  assert.ok(accepted, 'it is accepted while the batches wait');
  assert.deepEqual(new Set(results.map(({ status }) => status)), new Set(['fulfilled']));
});

test('a batch that waits for others of its organization is not stored after its caller has disconnected', async (t) => {
  const { caller, email } = await organizationWith('gone.example');
  const unlock = await lockTable(t, pool, 'batches', 'EXCLUSIVE');
  const batches = Array.from({ length: 4 }, () => acceptBatch(deps, caller, [email]));
  const disconnected = new AbortController();
  const abandoned = acceptBatch(deps, caller, [email], undefined, disconnected.signal);
  const result = Promise.allSettled([abandoned]);
  await sleep(200);
  disconnected.abort();
  await unlock();
  await Promise.all(batches);
  await result;
  await assert.rejects(abandoned, { code: 'unavailable', message: 'too many batches at a time; try again' });
  const { rows } = await pool.query('SELECT count(*)::int AS count FROM batches WHERE org_id = $1', [caller.orgId]);
  assert.deepEqual(rows, [{ count: 4 }]);
});
