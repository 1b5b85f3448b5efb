import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { reseal } from '../../src/accounts/reseal.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { keepCallback } from '../../src/store/emails/callbacks.ts';
import { insertAudit } from '../../src/store/accounts/audit.ts';
import { project } from '../../src/projection/emails.ts';
import { command } from '../main/command-line.ts';
import { force } from '../store/mail.ts';
import { backUp } from '../support/backup.ts';
import { columnsWith } from '../support/columns.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { metaRequest } from './provider-callbacks.ts';
import { assertRefused, bodyOf, inFuture, useService } from './service.ts';

const ADDRESS = 'canary.person@example.net';
/** Only in a bounce, a click and the audit log. */
const [IN_REPLY, IN_LINK, IN_AUDIT] = [
  'canary.reply@example.net',
  "canary.o'link@xn--bcher-kva.example",
  'canary.log@example.net',
];
const [PHONE, USER_ID] = ['+14165550123', 'CA.4711CanaryUser'];
/** A user whose number the backup does not contain. */
const OTHER_USER = 'CA.4712CanaryUser';
const LATER = 'canary.later@example.net';
const UNTOUCHED = 'canary.longer@example.net';

const service = await useService();
const [ours, theirs] = [await service.organization(), await service.organization()];
const META = { number: '+447800000001', provider: 'meta', phone_number_id: 'canary-1', access_token: 'token' };

async function afterRestore(settings: Readonly<Record<string, string>> = {}) {
  const { code, out, err } = await command(['after-restore'], {
    ...{ DATABASE_URL: service.databaseUrl, SECRET_KEY, ATTACHMENT_STORE: `file:${service.folder}` },
    ...settings,
  });
  return { code, err, erasures: code === 0 ? (JSON.parse(out) as { erasures: number }).erasures : undefined };
}

const erase = async (json: Record<string, string>) =>
  bodyOf(await ours.call('POST', '/v1/erasures', { json }), 200)['report'];

async function receive(from: string, userId: string): Promise<void> {
  const received = {
    ...{ from, id: `wamid.${Buffer.from(userId).toString('base64')}`, timestamp: '1773000000' },
    ...{ type: 'text', text: { body: 'canary words' }, user_id: userId, from_user_id: userId },
  };
  const contacts = [{ profile: { name: 'Canary Name' }, wa_id: from, user_id: userId }];
  const value = { metadata: { phone_number_id: META.phone_number_id }, contacts, messages: [received] };
  const body = JSON.stringify({ entry: [{ changes: [{ field: 'messages', value }] }] });
  assert.equal((await ours.call('POST', '/callbacks/meta', metaRequest(body))).status, 200);
}

async function eventOf(change: 'delivery_delayed' | 'clicked', detail: Record<string, string>): Promise<void> {
  const recipient = 'list@example.net';
  const id = await ours.sent({ to: recipient });
  await force(service.pool, id, 'sent');
  await project(service.pool, change, [{ id, recipient, dedupe_key: change, ...detail }]);
}

describe('a backup from before an erasure', () => {
  it('contains nothing of the erased recipients after after-restore, and all of other organizations', async () => {
    await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
    await ours.call('POST', '/v1/chatapp/numbers', { json: META });
    await ours.addSender('+12025550142');
    const attachments = [{ filename: 'a.txt', content: 'aGk=' }];
    const alone = await ours.sent({ to: `Ada <${ADDRESS.toUpperCase()}>`, attachments });
    await ours.sent({ to: ['b@example.net', ADDRESS], reply_to: ADDRESS });
    const open = await ours.sent({ to: ADDRESS, scheduled_at: inFuture({ hours: 2 }) });
    await force(service.pool, alone, 'sent');
    await project(service.pool, 'delivered', [{ id: alone, recipient: ADDRESS, dedupe_key: `delivered ${ADDRESS}` }]);
    await ours.call('POST', '/v1/suppressions', { json: { email: ADDRESS } });
    await keepCallback(service.pool, 'postmark', JSON.stringify({ Recipient: ADDRESS }));
    await eventOf('delivery_delayed', { error: `450 <${IN_REPLY}> is busy; orig_to=${IN_REPLY}` });
    await eventOf('clicked', {
      link: `https://x.example/?${new URLSearchParams({ q: "canary.o'link@Bücher.example" }).toString()}`,
    });
    const audit = { org_id: ours.id, actor_kind: 'system', actor_id: 'test', action: 'emails.export' } as const;
    await insertAudit(service.pool, { ...audit, target: null, detail: { filters: `It is:\n${IN_AUDIT}` } });
    const untouched = await ours.sent({ to: UNTOUCHED });
    await ours.call('POST', '/v1/sms', { json: { to: PHONE, text: 'canary text' } });
    await receive(PHONE.slice(1), USER_ID);
    await ours.call('POST', '/v1/chatapp', { json: { to: USER_ID, from: META.number, text: 'canary text' } });
    await ours.call('POST', '/v1/chatapp', { json: { to: OTHER_USER, from: META.number, text: 'canary text' } });
    const foreign = await theirs.sent({ to: ADDRESS });
    const before = await columnsWith(service.pool, 'canary.person', theirs.id);
    assert.ok(before.length >= 6, String(before));

    const restore = await backUp(service.pool);
    await receive('14165550124', OTHER_USER);
    for (const email of [ADDRESS, IN_REPLY, IN_LINK, IN_AUDIT, LATER]) await erase({ email });
    for (const phone of [PHONE, '+14165550124']) await erase({ phone });
    await restore();
    assert.deepEqual(await columnsWith(service.pool, 'canary.person', theirs.id), before, 'the backup has it again');

    // Two numbers, of which one is in the backup by its user only.
    assert.deepEqual(await afterRestore(), { code: 0, err: '', erasures: 7 - 1 });
    for (const text of [
      'canary.person',
      'canary.reply',
      'canary.o',
      'canary.log',
      PHONE.slice(1),
      '4711Canary',
      '4712Canary',
      'canary words',
      'Canary Name',
    ]) {
      assert.deepEqual(await columnsWith(service.pool, text, theirs.id), [], text);
    }
    assert.deepEqual((await theirs.email(foreign))['to'], [ADDRESS]);
    assert.deepEqual((await ours.email(untouched))['to'], [UNTOUCHED]);
    assertRefused(await ours.call('GET', `/v1/emails/${alone}/content`), 410, 'content_erased');
    assert.match(String((await ours.email(open))['to']), /^erased-[0-9a-f]{16}@erased\.invalid$/);
  });

  it('suppresses also recipients that it does not contain', async () => {
    const [hash] = (await makeEmailContents(SECRET_KEY).hashAddresses(service.pool, ours.id, [LATER])) ?? [];
    const { rowCount } = await service.pool.query('SELECT FROM erased_recipients WHERE org_id = $1 AND hash = $2', [
      ours.id,
      hash,
    ]);
    assert.equal(rowCount, 1);
  });

  it('changes nothing more when after-restore is repeated', async () => {
    assert.deepEqual(await afterRestore(), { code: 0, err: '', erasures: 0 });
  });

  it('is searched with the data key of the record if its organization had none yet', async () => {
    const { contents } = service.deps;
    const org = await service.organization();
    await org.call('POST', '/v1/suppressions', { json: { email: ADDRESS } });
    await org.call('POST', '/v1/erasures', { json: { email: ADDRESS } });
    await service.pool.query('DELETE FROM erased_recipients WHERE org_id = $1', [org.id]);
    await service.pool.query('DELETE FROM data_keys WHERE org_id = $1', [org.id]);
    await org.call('POST', '/v1/suppressions', { json: { email: ADDRESS } });
    assert.equal((await afterRestore()).erasures, 1);
    const { rows } = await service.pool.query('SELECT FROM suppressions WHERE org_id = $1', [org.id]);
    assert.equal(rows.length, 0);
    const [hash] = (await contents.hashAddresses(service.pool, org.id, [ADDRESS])) ?? [];
    const { rowCount } = await service.pool.query('SELECT FROM erased_recipients WHERE hash = $1', [hash]);
    assert.equal(rowCount, 1);
  });

  it('is searched with hashes that do not depend on SECRET_KEY, but only if SECRET_KEY opens its data keys', async () => {
    await ours.call('POST', '/v1/suppressions', { json: { email: ADDRESS } });
    const rotated = 'the-key-that-replaces-it-0123456789-abcdefghij';
    const failed = await afterRestore({ SECRET_KEY: rotated });
    assert.equal(failed.code, 1);
    assert.match(failed.err, /^SECRET_KEY: does not open the data keys of the backup/);
    await reseal(service.pool, [rotated, SECRET_KEY]);
    assert.equal((await afterRestore({ SECRET_KEY: rotated })).erasures, 1);
  });

  it('needs no SECRET_KEY if nothing was erased', async () => {
    const settings = { DATABASE_URL: service.databaseUrl, ATTACHMENT_STORE: `file:${service.folder}/none` };
    const { code, out } = await command(['after-restore'], settings);
    assert.equal(code, 0);
    assert.equal((JSON.parse(out) as { erasures: number }).erasures, 0);
  });
});
