import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { cursorToText } from '../../src/dashboard/cursors.ts';
import { project } from '../../src/projection/emails.ts';
import { inFuture, type Organization, useService } from '../http/service.ts';
import { type Page, signedIn, textOf, type Visitor } from './visitor.ts';

const service = await useService();

const isLive = ({ html }: Page) => /<div id="live"[^>]* hx-trigger="every 3s"/.test(html);
const FURTHER = `cursor=${cursorToText({ created_at: '2999-01-01T00:00:00.000Z', id: 'x_0' })}`;

describe('the first page of a list', () => {
  let ours: Organization;
  let member: Visitor;
  let hook: string;
  const idOf = async (path: string, json: object): Promise<string> =>
    ((await ours.call('POST', path, { json })).body as { id: string }).id;
  const page = async (path: string, status = 200): Promise<Page> => {
    const shown = await member.get(path);
    assert.equal(shown.status, status, textOf(shown.html));
    return shown;
  };
  before(async () => {
    ours = await service.organization();
    member = await signedIn(service, ours.id, 'member');
    await ours.addSender('+12025550145');
    const number = { number: '+12025550146', provider: 'twilio', auth_token: 'token' };
    await ours.call('POST', '/v1/chatapp/numbers', { json: number });
    hook = await idOf('/v1/webhooks', { url: 'https://example.com/hook' });
  });

  const scheduled_at = inFuture({ hours: 5 });
  const message = { to: '+14165550123', text: 'Hi.', scheduled_at };
  for (const [name, path, add] of [
    ['batches', () => '/dashboard/batches', () => idOf('/v1/emails/batch', { emails: [ours.mail({ scheduled_at })] })],
    ['WhatsApp messages', () => '/dashboard/chatapp', () => idOf('/v1/chatapp', message)],
    ['SMS', () => '/dashboard/sms', () => idOf('/v1/sms', message)],
    ['webhook deliveries', () => `/dashboard/webhooks/${hook}`, () => idOf(`/v1/webhooks/${hook}/test`, {})],
  ] as const) {
    it(`refreshes itself while it is empty and while nothing moves: ${name}`, async () => {
      assert.ok(isLive(await page(path())), 'the first one is awaited');
      const id = await add();
      const shown = await page(path());
      assert.ok(shown.html.includes(`id="open-${id}"`), 'its link has an id, which keeps the focus');
      assert.ok(isLive(shown), 'a new one may come');
      assert.ok(!isLive(await page(`${path()}?${FURTHER}`)), 'none comes on a further page');
    });
  }

  it('refreshes itself without the fields of its filters, and not while a filter is invalid', async () => {
    for (const [path, invalid] of [
      ['/dashboard/sms?status=queued', 'to=x'],
      [`/dashboard/webhooks/${hook}?status=failed`, 'since=x'],
    ]) {
      const { html } = await page(path ?? '');
      const live = html.slice(html.indexOf('<div id="live"'));
      assert.ok(live.includes(`hx-get="${path}"`), 'with its filters');
      assert.ok(html.includes('name="status"') && !live.includes('name="status"'), 'fields keep their input');
      assert.ok(!isLive(await page(`${path}&${invalid}`, 422)), 'the answer would be refused again');
    }
  });
});

describe('the overview', () => {
  it('refreshes itself until the first emails have changed for the last time', async () => {
    const ours = await service.organization();
    const viewer = await signedIn(service, ours.id, 'viewer');
    const shown = async (): Promise<Page> => {
      const page = await viewer.get('/dashboard?range=7d');
      assert.equal(page.status, 200, textOf(page.html));
      assert.ok(page.html.includes('<div id="live"'), 'each version replaces the one before');
      return page;
    };
    const empty = await shown();
    assert.ok(isLive(empty) && textOf(empty.html).includes('No emails yet'), 'the first email is awaited');
    assert.ok(empty.html.includes('hx-get="/dashboard?range=7d"'), 'with the chosen time');
    assert.ok(!empty.html.slice(empty.html.indexOf('<div id="live"')).includes('id="checklist"'));
    const id = await ours.sent({ subject: 'The first one' });
    const queued = await shown();
    assert.ok(isLive(queued) && textOf(queued.html).includes('The first one'), 'it is queued');
    await project(service.pool, 'delivered', [{ id }]);
    assert.ok(!isLive(await shown()), 'it was delivered');
    for (let n = 0; n < 8; n++) await ours.sent();
    assert.ok(isLive(await shown()), 'nine emails');
    await ours.sent();
    assert.ok(!isLive(await shown()), 'the statistics of many emails are not read every three seconds');
  });
});
