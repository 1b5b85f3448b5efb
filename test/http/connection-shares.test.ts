import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { makeConnectionShares } from '../../src/intake/connection-shares.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { lockTable, waitForBlocked } from '../support/locks.ts';
import { type Answer, assertRefused, type Organization, useService } from './service.ts';

/** Connections of the pool for reads; one organization gets half of them. */
const READS = 6;

/** Owns the database and has no pool of its own for reads. */
const owner = await useService();
const { pool } = owner;
const reads = makePool(owner.databaseUrl, 'reads', READS, () => undefined);
const shortReads = makePool(owner.databaseUrl, 'short reads', READS, () => undefined, { statementMs: 300 });
const service = await useService({ pool, shares: makeConnectionShares(pool, reads) });
const impatient = await useService({ pool, shares: makeConnectionShares(pool, shortReads) });
after(() => Promise.all([reads.end(), shortReads.end()]));
const [ours, theirs, others] = [await owner.organization(), await owner.organization(), await owner.organization()];

const call = ({ key }: Pick<Organization, 'key'>, method: string, path: string, json?: object): Promise<Answer> =>
  service.call(method, path, { key, ...(json && { json }) });
const send = (organization: Organization) => call(organization, 'POST', '/v1/emails', organization.mail());
const readLog = (organization: Organization) => call(organization, 'GET', '/v1/requests');
const statistics = (organization: Organization) => call(organization, 'GET', '/v1/stats');
const erase = (organization: Organization) =>
  call(organization, 'POST', '/v1/erasures', { email: 'person@example.net' });

function assertBusy(answer: Answer): void {
  assertRefused(answer, 503, 'unavailable', undefined, 'too many requests of this organization are in progress');
  assert.ok(Number(answer.headers['retry-after']) >= 1, String(answer.headers['retry-after']));
}

const repeat = <T>(times: number, make: () => Promise<T>): Promise<T>[] => Array.from({ length: times }, make);

describe('the share of an organization in database connections', () => {
  it('leaves reads to others while it is used up, and refuses with 503 what waits for it too long', async (t) => {
    const unlock = await lockTable(t, pool, 'api_requests', 'ACCESS EXCLUSIVE');
    const blocked = repeat(READS / 2, () => readLog(ours));
    await waitForBlocked(pool, READS / 2);
    const further = readLog(ours);
    assert.equal((await call(theirs, 'GET', '/v1/emails')).status, 200);
    assert.equal((await send(theirs)).status, 202);
    assert.equal((await send(ours)).status, 202);
    assertBusy(await further);
    await unlock();
    for (const answer of await Promise.all(blocked)) assert.equal(answer.status, 200, answer.text);
    assert.equal((await readLog(ours)).status, 200);
  });

  it('leaves sends and look-ups of keys their own connections while reads use all of theirs', async (t) => {
    const unlock = await lockTable(t, pool, 'api_requests', 'ACCESS EXCLUSIVE');
    const blocked = [ours, others].flatMap((each) => repeat(READS / 2, () => readLog(each)));
    await waitForBlocked(pool, READS);
    const newKey = await theirs.addKey('sending_access');
    for (const key of [theirs.key, newKey])
      assert.equal((await call({ key }, 'POST', '/v1/emails', theirs.mail())).status, 202);
    await unlock();
    for (const answer of await Promise.all(blocked)) assert.equal(answer.status, 200, answer.text);
  });

  it('has two expensive requests in progress, refuses a third with 503, and leaves its lists', async (t) => {
    const unlock = await lockTable(t, pool, 'stat_totals', 'ACCESS EXCLUSIVE');
    const blocked = repeat(2, () => statistics(ours));
    await waitForBlocked(pool, 2);
    const [third, erasure] = [statistics(ours), erase(ours)];
    assert.equal((await call(ours, 'GET', '/v1/emails')).status, 200);
    assert.equal((await erase(theirs)).status, 200, 'another organization has its own');
    assertBusy(await third);
    assertBusy(await erasure);
    await unlock();
    for (const answer of await Promise.all(blocked)) assert.equal(answer.status, 200, answer.text);
    assert.equal((await erase(ours)).status, 200);
  });

  it('is returned after refused requests', async () => {
    for (const answer of await Promise.all(repeat(READS * 2, () => call(ours, 'GET', '/v1/emails/em_absent'))))
      assert.equal(answer.status, 404);
    assert.equal((await call(ours, 'GET', '/v1/emails')).status, 200);
  });
});

describe('a read that takes the database too long', () => {
  it('is answered with 503 and Retry-After', async (t) => {
    const unlock = await lockTable(t, pool, 'api_requests', 'ACCESS EXCLUSIVE');
    const answer = await impatient.call('GET', '/v1/requests', { key: ours.key });
    assertRefused(
      answer,
      503,
      'unavailable',
      undefined,
      'this takes the database too long; try again, or ask for less',
    );
    assert.ok(Number(answer.headers['retry-after']) >= 1);
    await unlock();
    assert.equal((await impatient.call('GET', '/v1/requests', { key: ours.key })).status, 200);
  });
});
