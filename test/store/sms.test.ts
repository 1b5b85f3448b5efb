import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addSender } from '../../src/accounts/sms-senders.ts';
import { insertReceived } from '../../src/store/sms/opt-outs.ts';
import { deleteExpired } from '../../src/store/upkeep/expired.ts';
import { findReceivers, findSender } from '../../src/store/sms/senders.ts';
import { organizationFixture } from '../support/organization.ts';
import { organization } from './mail.ts';

const SERVICE = `MG${'0123456789abcdef'.repeat(2)}`;
const [WORLD, LATER, US, CODE] = ['+12025550142', '+12025550143', '+12025550144', '12345'] as const;

const { pool, orgId } = await organizationFixture();
const otherId = await organization(pool);
await addSender(pool, orgId, WORLD, []);
await addSender(pool, orgId, LATER, []);
await addSender(pool, orgId, US, ['US', 'CA']);
await addSender(pool, orgId, SERVICE, ['DE']);
await addSender(pool, otherId, CODE, ['FR']);

test('the sender names the country, else serves all, and of several it is the oldest', async () => {
  const chosen = async (from: string | null, country: string) => (await findSender(pool, orgId, from, country))?.sender;
  assert.equal(await chosen(null, 'US'), US);
  assert.equal(await chosen(null, 'CA'), US);
  assert.equal(await chosen(null, 'DE'), SERVICE);
  assert.equal(await chosen(null, 'FR'), WORLD);
  assert.equal(await chosen(LATER, 'US'), LATER);
  assert.equal(await chosen(SERVICE, 'DE'), SERVICE);
  assert.equal(await chosen(US, 'DE'), undefined);
  assert.equal(await chosen(CODE, 'FR'), undefined);
});

test('the receivers are a number, and then the messaging service that it is in', async () => {
  const [code, service] = [
    { org_id: otherId, sender: CODE },
    { org_id: orgId, sender: SERVICE },
  ];
  assert.deepEqual(await findReceivers(pool, CODE, null), [code]);
  assert.deepEqual(await findReceivers(pool, '+12025550199', SERVICE), [service]);
  assert.deepEqual(await findReceivers(pool, US, SERVICE), [{ org_id: orgId, sender: US }, service]);
  assert.deepEqual(await findReceivers(pool, '+12025550199', null), []);
});

test('an inbound message is received once, and its id is deleted after 30 days', async () => {
  assert.equal(await insertReceived(pool, 'SM1'), true);
  assert.equal(await insertReceived(pool, 'SM1'), false);
  await pool.query(
    `INSERT INTO sms_received VALUES ('SM2', now() - interval '31 days'), ('SM3', now() - interval '31 days')`,
  );
  assert.equal(await deleteExpired(pool, 'sms_received', 1), 1);
  assert.equal(await deleteExpired(pool, 'sms_received', 10), 1);
  assert.equal(await insertReceived(pool, 'SM1'), false);
});
