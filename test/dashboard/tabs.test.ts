import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { invite } from '../../src/accounts/invitations.ts';
import { insertMembership } from '../../src/store/accounts/users.ts';
import { useService } from '../http/service.ts';
import { signedIn, textOf, visitor } from './visitor.ts';

const service = await useService();
const [first, second, third] = [
  await service.organization('First'),
  await service.organization('Second'),
  await service.organization('Third'),
];

/** A user of three organizations who has opened a page of the first one, and then selected the second one in another tab. */
async function withStaleTab() {
  const user = await signedIn(service, first.id);
  for (const { id } of [second, third]) await insertMembership(service.pool, id, user.id, 'owner');
  await user.change('/dashboard/organization', { organization: second.id });
  return user;
}

describe('a tab of an organization that is no longer selected', () => {
  it('is not refreshed with the data of the selected one', async () => {
    const user = await signedIn(service, first.id);
    await insertMembership(service.pool, second.id, user.id, 'viewer');
    await second.sent({ subject: 'of the second' });
    const header = /<body hx-headers="([^"]*)"/.exec((await user.get('/dashboard/emails')).html)?.[1] ?? '';
    const headers = {
      'hx-request': 'true',
      ...(JSON.parse(header.replaceAll('&#34;', '"')) as Record<string, string>),
    };
    const refresh = () => user.get('/dashboard/emails', headers);
    assert.equal((await refresh()).status, 200);
    await user.change('/dashboard/organization', { organization: second.id });
    const { status, html } = await refresh();
    assert.equal(status, 409);
    assert.ok(!html.includes('of the second'), textOf(html));
    assert.ok((await user.get('/dashboard/emails')).html.includes('of the second'));
  });

  it('signs out', async () => {
    const user = await withStaleTab();
    const cookie = user.cookie();
    assert.equal((await user.post('/dashboard/sign-out', { _org: first.id })).status, 303);
    const former = visitor(service);
    former.take(cookie);
    assert.match((await former.get('/dashboard')).location ?? '', /^\/dashboard\/sign-in/);
  });

  it('signs out and leads to the sign-in page after the session has ended', async () => {
    const { status, location } = await visitor(service).post('/dashboard/sign-out', { _org: first.id });
    assert.deepEqual([status, location], [303, '/dashboard/sign-in']);
  });

  it('selects an organization', async () => {
    const user = await withStaleTab();
    const { html } = await user.change('/dashboard/organization', { _org: first.id, organization: third.id });
    assert.match(html, /<title>Overview · Third<\/title>/);
  });

  it('accepts and declines invitations of its user', async () => {
    const user = await withStaleTab();
    for (const answer of ['accept', 'decline']) {
      const { id } = await invite(service.pool, (await service.organization()).id, user.email, 'member');
      assert.equal((await user.post(`/dashboard/my-invitations/${id}/${answer}`, { _org: first.id })).status, 303);
    }
  });

  it('changes nothing in the selected one', async () => {
    const user = await withStaleTab();
    const { status, html } = await user.post('/dashboard/settings', { _org: first.id, name: 'Renamed' });
    assert.equal(status, 409);
    assert.ok(textOf(html).includes('You have changed the organization in another tab'), textOf(html));
    assert.match((await user.get('/dashboard/settings')).html, /<title>[^<]*· Second<\/title>/);
  });
});
