import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { command } from './command-line.ts';

const SERVICE = `MG${'0123456789abcdef'.repeat(2)}`;

const database = await useDatabase();
const orgId = await organization(database.pool);
const otherId = await organization(database.pool);

function sender(...args: readonly string[]) {
  return command(['sender', ...args], { DATABASE_URL: database.url });
}

const add = (...args: readonly string[]) => sender('add', '--organization', orgId, ...args);

describe('sender', () => {
  it('add connects a number, a short code and a messaging service, each once', async () => {
    for (const [args, expected] of [
      [['--number', '+1 202 555 0142'], { number: '+12025550142', messaging_service_sid: null, countries: [] }],
      [['--number', '12345', '--country', 'us'], { number: '12345', messaging_service_sid: null, countries: ['US'] }],
      [
        ['--messaging-service-sid', SERVICE, '--country', 'US', '--country', 'CA', '--country', 'US'],
        { number: null, messaging_service_sid: SERVICE, countries: ['US', 'CA'] },
      ],
    ] as const) {
      const added = await add(...args);
      assert.equal(added.err, '');
      const { id, created_at, ...rest } = JSON.parse(added.out) as { id: string; created_at: string };
      assert.match(id, /^snd_[0-9a-z]{26}$/);
      assert.match(created_at, /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/);
      assert.deepEqual(rest, expected);
      const again = { code: 1, out: '', err: 'sender: is connected already\n' };
      assert.deepEqual(await add(...args), again);
      assert.deepEqual(await sender('add', '--organization', otherId, ...args), again);
    }
  });

  for (const [args, code, err] of [
    [[], 2, /^Give either --number or --messaging-service-sid\.\n/],
    [['--number', '+12025550199', '--messaging-service-sid', SERVICE], 2, /^Give either/],
    [['--number', 'ACME'], 1, /^sender: must be an international telephone number/],
    [['--messaging-service-sid', 'MG1'], 1, /^sender: must be/],
    [['--number', '+12025550199', '--country', 'XX'], 1, /^country: must be a country/],
  ] as const) {
    it(`add ${args.join(' ')} is refused`, async () => {
      const refused = await add(...args);
      assert.deepEqual([refused.code, refused.out], [code, '']);
      assert.match(refused.err, err);
    });
  }

  it('add is refused for an unknown organization', async () => {
    const refused = await sender('add', '--organization', 'org_x', '--number', '+12025550199');
    assert.deepEqual([refused.code, refused.err], [1, 'organization: there is no organization org_x\n']);
  });

  it('list shows those of one organization or of all, remove disconnects one, and the audit log has both', async () => {
    const listed = async (...args: readonly string[]) =>
      (JSON.parse((await sender('list', ...args)).out) as { senders: { org_id: string }[] }).senders;
    assert.equal((await listed('--organization', orgId)).length, 3);
    assert.equal((await listed('--organization', otherId)).length, 0);
    assert.equal((await listed()).length, 3);

    const number = ['--number', '+12025550142'];
    const stranger = await sender('remove', '--organization', otherId, ...number);
    assert.deepEqual([stranger.code, stranger.err], [1, 'sender: the organization has no sender +12025550142\n']);
    const removed = await sender('remove', '--organization', orgId, ...number);
    assert.equal((JSON.parse(removed.out) as { sender: string }).sender, '+12025550142');
    assert.equal((await listed('--organization', orgId)).length, 2);

    const { rows } = await database.pool.query<{ action: string }>(
      `SELECT action FROM audit_log WHERE org_id = $1 AND action LIKE 'sms%' ORDER BY id`,
      [orgId],
    );
    const actions = rows.map(({ action }) => action);
    assert.deepEqual(actions, [...Array<string>(3).fill('sms.senders.create'), 'sms.senders.delete']);
  });
});
