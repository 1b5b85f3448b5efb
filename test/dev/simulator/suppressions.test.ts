import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postmarkSuppressions } from '../../../src/providers/postmark/suppressions.ts';
import { httpServer } from '../../providers/servers.ts';
import { mail, start, TOKEN } from './start.ts';

const settings = (baseUrl: string) => {
  return { serverToken: TOKEN, baseUrl, messageStream: 'outbound', broadcastStream: 'broadcast' };
};
const settled = () => new Promise((resolve) => setTimeout(resolve, 60));

test('an address that bounced for good or complained is refused until it is taken off the list', async (t) => {
  const { postmark, post, inbox } = await start(t);
  for (const local of ['bounced+mailbox_not_found', 'bounced+unknown', 'complained']) {
    const To = `${local}@refused.example`;
    await postmark.sendEmail(mail({ To }));
    await settled();
    const answer = await post('/email', JSON.stringify(mail({ To: To.toUpperCase() })));
    const body = (await answer.json()) as { ErrorCode: number; Message: string };
    assert.deepEqual([answer.status, body.ErrorCode], [422, 406]);
    assert.match(body.Message, new RegExp(`Found inactive addresses: ${To.toUpperCase().replace('+', '\\+')}\\.`));
    assert.equal((await inbox(To)).length, 1);
    // Lists belong to streams.
    await postmark.sendEmail(mail({ To, MessageStream: 'broadcast' }));
  }
});

test('other bounces refuse nobody', async (t) => {
  const { postmark, inbox } = await start(t);
  for (const local of ['bounced+mailbox_full', 'bounced+spam_block', 'delayed', 'opened']) {
    const To = `${local}@taken.example`;
    await postmark.sendEmail(mail({ To }));
    await settled();
    await postmark.sendEmail(mail({ To }));
    assert.equal((await inbox(To)).length, 2);
  }
});

test('who is on the list from the start is left out of a message to several, which says so', async (t) => {
  const { post, inbox } = await start(t);
  const To = 'bounced+provider_suppressed@example.net, a@example.net';
  const answer = await post('/email', JSON.stringify(mail({ To })));
  const body = (await answer.json()) as { ErrorCode: number; Message: string };
  assert.deepEqual([answer.status, body.ErrorCode], [200, 0]);
  assert.match(body.Message, /^Message OK, but will not deliver to these inactive addresses: bounced\+provider_supp/);
  assert.equal((await inbox('a@example.net')).length, 1);
  assert.equal((await inbox('bounced+provider_suppressed@example.net')).length, 0);
});

test('addresses are put on the list, shown and taken off; complaints stay', async (t) => {
  const { postmark, postmarkUrl } = await start(t);
  const { removeSuppression } = postmarkSuppressions(settings(postmarkUrl));
  await postmark.createSuppressions('broadcast', { Suppressions: [{ EmailAddress: 'A@example.net' }] });
  await postmark.sendEmail(mail({ To: 'complained@example.net, bounced@example.net' }));
  await settled();

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

test('taking an address off a list that cannot be reached is an error', async (t) => {
  const { postmarkUrl, close } = await start(t);
  await close();
  await assert.rejects(postmarkSuppressions(settings(postmarkUrl)).removeSuppression('a@example.net'));
});

test('a stream that the server does not have counts as a list without entries', async (t) => {
  const asked: unknown[] = [];
  const url = await httpServer(t, (request, response) => {
    asked.push(request.url);
    const isMissing = request.url?.includes('/broadcast/');
    response.statusCode = isMissing ? 422 : 200;
    response.end(
      JSON.stringify(
        isMissing ? { ErrorCode: 1226, Message: 'No such stream.' } : { Suppressions: [{ Status: 'Deleted' }] },
      ),
    );
  });
  assert.equal(await postmarkSuppressions(settings(url)).removeSuppression('a@example.net'), true);
  assert.deepEqual(asked, [
    '/message-streams/outbound/suppressions/delete',
    '/message-streams/broadcast/suppressions/delete',
  ]);
});
