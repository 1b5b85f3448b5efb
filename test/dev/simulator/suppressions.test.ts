import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { postmarkSuppressions } from '../../../src/providers/postmark/suppressions.ts';
import { recordingServer } from '../../providers/servers.ts';
import { TOKEN } from '../../providers/simulator.ts';
import { mail, start } from './start.ts';

const settings = (baseUrl: string) => {
  return { serverToken: TOKEN, baseUrl, messageStream: 'outbound', broadcastStream: 'broadcast' };
};
const awaitEffects = () => sleep(60);

test('refuses an address that bounced permanently or complained', async (t) => {
  const { postmark, post, inbox } = await start(t);
  for (const local of ['bounced+mailbox_not_found', 'bounced+unknown', 'complained']) {
    const To = `${local}@refused.example`;
    await postmark.sendEmail(mail({ To }));
    await awaitEffects();
    const answer = await post('/email', mail({ To: To.toUpperCase() }));
    const body = (await answer.json()) as { ErrorCode: number; Message: string };
    assert.deepEqual([answer.status, body.ErrorCode], [422, 406]);
    assert.match(body.Message, new RegExp(`Found inactive addresses: ${To.toUpperCase().replace('+', '\\+')}\\.`));
    assert.equal((await inbox(To)).length, 1);
    // Lists belong to streams.
    await postmark.sendEmail(mail({ To, MessageStream: 'broadcast' }));
  }
});

test('adds, lists and removes suppressions, except complaints', async (t) => {
  const { postmark, postmarkUrl } = await start(t);
  const { removeSuppression } = postmarkSuppressions(settings(postmarkUrl));
  await postmark.createSuppressions('broadcast', { Suppressions: [{ EmailAddress: 'A@example.net' }] });
  await postmark.sendEmail(mail({ To: 'complained@example.net, bounced@example.net' }));
  await awaitEffects();

  const list = async (stream: string) => {
    const { Suppressions } = await postmark.getSuppressions(stream);
    return Suppressions.map(({ EmailAddress, SuppressionReason, Origin }) => [EmailAddress, SuppressionReason, Origin]);
  };
  const complaint = ['complained@example.net', 'SpamComplaint', 'Recipient'];
  assert.deepEqual(await list('broadcast'), [['A@example.net', 'ManualSuppression', 'Customer']]);
  assert.deepEqual(await list('outbound'), [complaint, ['bounced@example.net', 'HardBounce', 'Recipient']]);

  assert.equal(await removeSuppression('a@EXAMPLE.net'), true);
  assert.equal(await removeSuppression('bounced@example.net'), true);
  assert.equal(await removeSuppression('nobody@example.net'), true);
  assert.equal(await removeSuppression('complained@example.net'), false);
  assert.deepEqual([await list('broadcast'), await list('outbound')], [[], [complaint]]);
  await postmark.sendEmail(mail({ To: 'bounced@example.net' }));
  assert.equal(await removeSuppression('bounced+provider_suppressed@example.net'), true);
  await postmark.sendEmail(mail({ To: 'bounced+provider_suppressed@example.net' }));
});

test('fails to remove a suppression if the provider cannot be reached', async (t) => {
  const { postmarkUrl, close } = await start(t);
  await close();
  await assert.rejects(postmarkSuppressions(settings(postmarkUrl)).removeSuppression('a@example.net'));
});

test('treats a stream that does not exist as an empty suppression list', async (t) => {
  const { url, requests } = await recordingServer(t, ({ url: path }) =>
    path.includes('/broadcast/')
      ? { status: 422, body: { ErrorCode: 1226, Message: 'No such stream.' } }
      : { body: { Suppressions: [{ Status: 'Deleted' }] } },
  );
  assert.equal(await postmarkSuppressions(settings(url)).removeSuppression('a@example.net'), true);
  assert.deepEqual(
    requests.map(({ url: path }) => path),
    ['/message-streams/outbound/suppressions/delete', '/message-streams/broadcast/suppressions/delete'],
  );
});
