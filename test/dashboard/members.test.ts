import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resetUser } from '../../src/accounts/user-accounts.ts';
import { createUser } from '../../src/accounts/users.ts';
import { insertMembership } from '../../src/store/accounts/users.ts';
import { bodyOf, inFuture, useService } from '../http/service.ts';
import { PASSWORD, type Page, signedIn, textOf, visitor } from './visitor.ts';

const service = await useService();
const organization = await service.organization('Ours');

const owner = () => signedIn(service, organization.id);

function linkOf({ html, status }: Page): string {
  assert.equal(status, 200, textOf(html));
  const [link] = /http:\/\/127\.0\.0\.1:\d+\/dashboard\/invitations\/[\w-]{43}/.exec(html) ?? [];
  assert.ok(link !== undefined, textOf(html));
  return link;
}

describe('an invitation', () => {
  it('makes a new user a member once, with a name and password', async () => {
    const ada = await owner();
    const made = await ada.post('/dashboard/members', { email: 'Grace@Example.com', role: 'viewer' });
    const path = new URL(linkOf(made)).pathname;
    assert.ok(textOf((await ada.get('/dashboard/members')).html).includes('grace@example.com'), 'it is listed');

    const grace = visitor(service);
    const shown = await grace.get(path);
    assert.ok(textOf(shown.html).includes('Join Ours'), textOf(shown.html));
    const weak = await grace.post(path, { name: 'Grace', password: 'short' });
    assert.equal(weak.status, 422);
    assert.match(weak.html, /id="field-password-problem"[^>]*>must be 8 to 200 characters/);
    assert.match(weak.html, /value="Grace"/);
    assert.ok(!weak.html.includes('short"'), 'a password does not stay');
    const joined = await grace.change(path, { name: 'Grace <b>', password: PASSWORD });
    assert.ok(textOf(joined.html).includes('Welcome to Ours.'), textOf(joined.html));
    assert.ok(!textOf((await grace.get('/dashboard')).html).includes('Welcome to'), 'shown once');

    assert.equal((await visitor(service).get(path)).status, 404);
    assert.equal((await visitor(service).post(path, { password: PASSWORD })).status, 404);
    const list = await ada.get('/dashboard/members');
    assert.match(textOf(list.html), /Grace <b> grace@example\.com viewer/);
    assert.ok(!list.html.includes('<b>'), 'a name is escaped');
    await visitor(service).signIn('grace@example.com', PASSWORD);
  });

  it('adds a user of another organization, who then switches between both', async () => {
    const ada = await owner();
    const other = await service.organization('Another');
    const grace = await signedIn(service, other.id, 'owner');
    const path = new URL(linkOf(await ada.post('/dashboard/members', { email: grace.email, role: 'member' }))).pathname;

    const asked = visitor(service);
    assert.ok(textOf((await asked.get(path)).html).includes('Sign in to accept'), 'a password is not chosen again');
    const joined = await grace.change(path);
    assert.ok(textOf(joined.html).includes('Ours'), textOf(joined.html));
    const back = await grace.change('/dashboard/organization', { organization: other.id });
    assert.match(back.html, /<title>Overview · Another<\/title>/);
    // The user is not a member of it, and stays in the current organization.
    const third = await service.organization('Third');
    assert.match((await grace.change('/dashboard/organization', { organization: third.id })).html, /· Another</);
    // A form of a page that was shown for the other organization.
    const stale = await grace.post('/dashboard/members', {
      _org: organization.id,
      email: 'x@example.com',
      role: 'owner',
    });
    assert.equal(stale.status, 409);
  });

  it('is for its address only', async () => {
    const ada = await owner();
    const eve = await signedIn(service, (await service.organization()).id);
    const path = new URL(linkOf(await ada.post('/dashboard/members', { email: 'bob@example.com', role: 'owner' })))
      .pathname;
    const shown = await eve.get(path);
    assert.ok(textOf(shown.html).includes(`You are signed in as ${eve.email}`), textOf(shown.html));
    assert.equal((await eve.post(path)).status, 409);
  });

  it('ends when it is withdrawn, replaced, or 7 days old', async () => {
    const ada = await owner();
    const again = async () =>
      new URL(linkOf(await ada.post('/dashboard/members', { email: 'carol@example.com', role: 'member' }))).pathname;
    const [first, second] = [await again(), await again()];
    assert.equal((await visitor(service).get(first)).status, 404);
    assert.equal((await visitor(service).get(second)).status, 200);
    const { rows } = await service.pool.query<{ id: string }>(`SELECT id FROM invitations WHERE email = $1`, [
      'carol@example.com',
    ]);
    await ada.change(`/dashboard/members/invitations/${rows[0]?.id ?? ''}/withdraw`);
    assert.equal((await visitor(service).get(second)).status, 404);
    const third = await again();
    const pass = (hours: number) =>
      service.pool.query('UPDATE invitations SET expires_at = expires_at - make_interval(hours => $1)', [hours]);
    await pass(7 * 24 - 1);
    assert.equal((await visitor(service).get(third)).status, 200);
    await pass(1);
    assert.equal((await visitor(service).get(third)).status, 404);
  });

  it('is refused at the field for a member and an invalid address, and the input stays', async () => {
    const ada = await owner();
    const member = await ada.post('/dashboard/members', { email: ada.email, role: 'viewer' });
    assert.equal(member.status, 409);
    assert.match(member.html, /id="field-email-problem"[^>]*>is a member/);
    const nonsense = await ada.post('/dashboard/members', { email: 'no <address>"', role: 'viewer' });
    assert.equal(nonsense.status, 422);
    assert.ok(nonsense.html.includes('value="no &lt;address&gt;&quot;"'), 'it stays, escaped');
    assert.match(nonsense.html, /<option value="viewer" selected>/);
    const role = await ada.post('/dashboard/members', { email: 'x@example.com', role: 'king' });
    assert.match(role.html, /id="field-role-problem"[^>]*>is not one of the choices/);
  });
});

describe('a user who exists already', () => {
  it('is invited by the operator, sees that after signing in, and accepts', async () => {
    const [first, second] = [await service.organization('First'), await service.organization('Second')];
    const ada = await signedIn(service, first.id);
    const made = await createUser(service.pool, second.id, { email: ada.email, role: 'owner' });
    assert.deepEqual(Object.keys(made), ['id', 'email', 'invitation']);
    const id = made.invitation?.id ?? '';
    assert.ok(!(await ada.get('/dashboard')).html.includes('Second'), 'is no member yet');
    assert.equal((await ada.post('/dashboard/organization', { organization: second.id })).status, 303);
    assert.ok(!(await ada.get('/dashboard')).html.includes('Second'), 'is no member yet');

    const eve = await signedIn(service, first.id);
    assert.ok(textOf((await eve.get('/dashboard/my-invitations')).html).includes('You have no open invitation'));
    assert.equal((await eve.post(`/dashboard/my-invitations/${id}/accept`)).status, 404);
    assert.equal((await visitor(service).post(`/dashboard/my-invitations/${id}/accept`)).status, 303);

    const signed = await ada.change('/dashboard/sign-in', { email: ada.email, password: PASSWORD });
    assert.ok(textOf(signed.html).includes('You have an open invitation'), textOf(signed.html));
    const listed = textOf((await ada.get('/dashboard/my-invitations')).html);
    assert.ok(listed.includes('Second invites you as owner'), listed);
    const joined = await ada.change(`/dashboard/my-invitations/${id}/accept`);
    assert.ok(textOf(joined.html).includes('Welcome to Second.'), textOf(joined.html));
    assert.equal((await ada.post(`/dashboard/my-invitations/${id}/accept`)).status, 404, 'once');
  });

  it('may decline an invitation', async () => {
    const [first, second] = [await service.organization('First'), await service.organization('Second')];
    const [ada, bob] = [await signedIn(service, first.id), await signedIn(service, second.id)];
    linkOf(await bob.post('/dashboard/members', { email: ada.email, role: 'viewer' }));
    const { rows } = await service.pool.query<{ id: string }>(`SELECT id FROM invitations WHERE email = $1`, [
      ada.email,
    ]);
    const path = `/dashboard/my-invitations/${rows[0]?.id ?? ''}`;
    const after = await ada.change(`${path}/decline`);
    assert.ok(textOf(after.html).includes('You have no open invitation'), textOf(after.html));
    assert.equal((await ada.post(`${path}/accept`)).status, 404);
  });

  it('gets no access to another organization by a password that an inviter chose', async () => {
    const [attacker, victim] = [await service.organization('Attacker'), await service.organization('Victim')];
    const eve = await signedIn(service, attacker.id);
    const link = linkOf(await eve.post('/dashboard/members', { email: 'cto@victim.example', role: 'viewer' }));
    const fake = visitor(service);
    await fake.change(new URL(link).pathname, { name: 'CTO', password: PASSWORD });

    // The operator creates the first user of Victim.
    const email = 'cto@victim.example';
    await assert.rejects(createUser(service.pool, victim.id, { email }), /created from an invitation link/);
    // An owner of Victim invites the address: only the holder of the link can accept.
    const owner = await signedIn(service, victim.id);
    linkOf(await owner.post('/dashboard/members', { email, role: 'owner' }));
    assert.ok(textOf((await fake.get('/dashboard/my-invitations')).html).includes('You have no open invitation'));
    const { rows } = await service.pool.query<{ id: string }>(`SELECT id FROM invitations WHERE org_id = $1`, [
      victim.id,
    ]);
    assert.equal((await fake.post(`/dashboard/my-invitations/${rows[0]?.id ?? ''}/accept`)).status, 404);
    assert.equal((await fake.post('/dashboard/organization', { organization: victim.id })).status, 303);
    assert.ok(!textOf((await fake.get('/dashboard')).html).includes('Victim'));

    const made = await createUser(service.pool, victim.id, { email, role: 'owner', resetPassword: true });
    assert.equal((await fake.get('/dashboard')).status, 303, 'its session has ended');
    assert.equal((await visitor(service).post('/dashboard/sign-in', { email, password: PASSWORD })).status, 401);
    const cto = visitor(service);
    await cto.signIn(email, made.password ?? '');
    await cto.post('/dashboard/organization', { organization: victim.id });
    assert.ok(textOf((await cto.get('/dashboard')).html).includes('Victim'));
  });

  it('accepts no invitation before the address is confirmed, since an inviter may know the password', async () => {
    const [attacker, victim] = [await service.organization('Attacker'), await service.organization('Victim')];
    const [eve, owner] = [await signedIn(service, attacker.id), await signedIn(service, victim.id)];
    const email = 'ciso@victim.example';
    const chosen = linkOf(await eve.post('/dashboard/members', { email, role: 'viewer' }));
    const fake = visitor(service);
    await fake.change(new URL(chosen).pathname, { name: 'CISO', password: PASSWORD });

    const path = new URL(linkOf(await owner.post('/dashboard/members', { email, role: 'owner' }))).pathname;
    const holder = visitor(service);
    await holder.signIn(email, PASSWORD);
    assert.equal((await holder.post(path)).status, 409);
    await holder.post('/dashboard/organization', { organization: victim.id });
    assert.ok(!textOf((await holder.get('/dashboard')).html).includes('Victim'));
    for (const browser of [holder, visitor(service)]) {
      const { html } = await browser.get(path);
      assert.ok(textOf(html).includes('was never confirmed') && !html.includes('Accept the invitation'), textOf(html));
      assert.ok(html.includes('href="/dashboard/forgot-password"'), html);
    }
    assert.ok(textOf((await holder.get('/dashboard/forgot-password')).html).includes('user reset --email'));

    const { password = '' } = await resetUser(service.pool, { email });
    assert.equal((await fake.get('/dashboard')).status, 303, 'its session has ended');
    assert.equal((await visitor(service).post('/dashboard/sign-in', { email, password: PASSWORD })).status, 401);
    await holder.signIn(email, password);
    assert.ok(textOf((await holder.change(path)).html).includes('Welcome to Victim.'));
  });
});

describe('members', () => {
  it('lose or gain access as soon as their role changes or they are removed', async () => {
    const { id } = await service.organization('Roles');
    const [ada, bob] = [await signedIn(service, id), await signedIn(service, id, 'viewer')];
    assert.equal((await bob.post('/dashboard/members', { email: 'x@example.com', role: 'viewer' })).status, 403);
    const changed = await ada.change(`/dashboard/members/${bob.id}/role`, { role: 'owner' });
    assert.ok(textOf(changed.html).includes(`${bob.email} is owner now.`), textOf(changed.html));
    assert.equal((await bob.post('/dashboard/members', { email: 'x@example.com', role: 'viewer' })).status, 200);
    await ada.change(`/dashboard/members/${bob.id}/remove`);
    const gone = await bob.get('/dashboard/members');
    assert.equal(gone.status, 403);
    assert.ok(textOf(gone.html).includes('is in no organization'), textOf(gone.html));
    assert.ok(gone.html.includes('/dashboard/sign-out'), 'a user can sign out');
  });

  it('keep their last owner, also when two owners leave concurrently', async () => {
    const { id } = await service.organization('Owners');
    const [ada, bob] = [await signedIn(service, id), await signedIn(service, id)];
    const [one, two] = await Promise.all([ada.post('/dashboard/account/leave'), bob.post('/dashboard/account/leave')]);
    assert.deepEqual([one.status, two.status].sort(), [303, 409]);
    const last = one.status === 409 ? ada : bob;
    assert.equal((await last.post(`/dashboard/members/${last.id}/role`, { role: 'member' })).status, 409);
    assert.equal((await last.post(`/dashboard/members/${last.id}/remove`)).status, 409);
    assert.equal((await last.get('/dashboard')).status, 200);
  });
});

describe('an account', () => {
  it('changes its password, which ends its other sessions', async () => {
    const ada = await owner();
    const elsewhere = visitor(service);
    await elsewhere.signIn(ada.email, PASSWORD);
    const wrong = await ada.post('/dashboard/account/password', { current: 'wrong', password: 'a new password' });
    assert.equal(wrong.status, 422);
    assert.match(wrong.html, /id="field-current-problem"[^>]*>is not your password/);
    const done = await ada.change('/dashboard/account/password', { current: PASSWORD, password: 'a new password' });
    assert.ok(textOf(done.html).includes('Your password was changed'), textOf(done.html));
    assert.equal((await elsewhere.get('/dashboard')).status, 303);
    assert.equal((await elsewhere.post('/dashboard/sign-in', { email: ada.email, password: PASSWORD })).status, 401);
    await elsewhere.signIn(ada.email, 'a new password');
  });

  it('has a change of its password in the audit log of each of its organizations', async () => {
    const [one, two] = [await service.organization('One'), await service.organization('Two')];
    const ada = await signedIn(service, one.id);
    await insertMembership(service.pool, two.id, ada.id, 'member');
    await ada.change('/dashboard/account/password', { current: PASSWORD, password: 'a new password' });
    const { rows } = await service.pool.query(
      `SELECT org_id, actor_id FROM audit_log WHERE action = 'account.password' AND target = $1 ORDER BY org_id`,
      [ada.id],
    );
    assert.deepEqual(
      rows,
      [one.id, two.id].sort().map((org_id) => ({ org_id, actor_id: ada.id })),
    );
  });
});

describe('the current password of an account', () => {
  it('cannot be guessed without a limit', async () => {
    const ada = await owner();
    const change = (current: string) =>
      ada.post('/dashboard/account/password', { current, password: 'a new password' });
    assert.equal((await change('a guess')).status, 422);
    await service.pool.query(`UPDATE sign_in_attempts SET attempts = 10 WHERE kind = 'password' AND attempts = 1`);
    const right = await change(PASSWORD);
    assert.equal(right.status, 429);
    assert.ok(
      textOf(right.html).includes('The current password was wrong too often; try again in '),
      textOf(right.html),
    );
  });
});

describe('the audit log', () => {
  it('lists every change of the organization, latest first, without secrets', async () => {
    const ours = await service.organization('Audited');
    const ada = await signedIn(service, ours.id);
    const link = linkOf(await ada.post('/dashboard/members', { email: 'dan@example.com', role: 'member' }));
    const dan = visitor(service);
    await dan.change(new URL(link).pathname, { name: 'Dan', password: PASSWORD });
    const hook = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
    const { id, secret } = hook.body as { id: string; secret: string };
    await ours.call('POST', `/v1/webhooks/${id}/rotate-secret`);
    await ours.call('DELETE', `/v1/webhooks/${id}`);
    // Failed, reading and sending requests are no changes.
    await ours.call('DELETE', `/v1/webhooks/${id}`);
    await ours.call('GET', '/v1/webhooks');
    await ours.send();

    const { html } = await ada.get('/dashboard/audit');
    const text = textOf(html);
    const actions = [...html.matchAll(/<code>([a-z]+\.[a-z.-]+)<\/code>/g)].map((match) => match[1]);
    assert.deepEqual(actions, [
      'webhooks.delete',
      'webhooks.rotate-secret',
      'webhooks.create',
      'members.join',
      'members.invite',
    ]);
    assert.equal(text.split(id).length - 1, 3, 'each names the changed endpoint');
    assert.ok(text.includes('dan@example.com') && text.includes(ada.email), text);
    for (const word of [secret, PASSWORD, link.split('/').at(-1) ?? '']) assert.ok(!html.includes(word), word);
    const other = await signedIn(service, (await service.organization()).id);
    assert.doesNotMatch(
      textOf((await other.get('/dashboard/audit')).html),
      /webhooks\.|members\.(?!create)/,
      'only ours',
    );
  });

  it('links targets to their pages unless they were deleted, and leaves out empty filters', async () => {
    const ours = await service.organization('Linked');
    const ada = await signedIn(service, ours.id);
    const created = async (path: string, json: object) =>
      bodyOf<{ id: string }>(await ours.call('POST', path, { json: { ...json } }), 201).id;
    const hook = await created('/v1/webhooks', { url: 'https://example.com/hook' });
    const domain = await created('/v1/domains', { name: 'linked.example.com' });
    const key = await created('/v1/keys', { preset: 'read_only' });
    const number = await created('/v1/chatapp/numbers', {
      ...{ number: '+12025550149', provider: 'twilio', auth_token: 'token' },
    });
    const email = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
    await ours.call('POST', `/v1/emails/${email}/cancel`);
    await ada.change('/dashboard/account/name', { name: 'Ada' });
    await ada.change('/dashboard/suppressions/add', { addresses: 'x@example.com' });
    for (const query of ['', '?q=welcome']) {
      assert.equal((await ada.get(`/dashboard/emails/download${query}`)).status, 200);
    }

    const shown = await ada.get('/dashboard/audit');
    const links = [...shown.html.matchAll(/<a href="([^"]+)"><code>/g)].map(([, path = '']) => path);
    assert.deepEqual(links.toSorted(), [
      `/dashboard/domains/${domain}`,
      `/dashboard/emails/${email}`,
      '/dashboard/members',
      `/dashboard/numbers/${number}`,
      `/dashboard/requests?key=${key}`,
      '/dashboard/suppressions',
      `/dashboard/webhooks/${hook}`,
    ]);
    for (const path of links) assert.equal((await ada.get(path)).status, 200, path);
    assert.deepEqual(textOf(shown.html).match(/filters: \S*/g), ['filters: ?q=welcome']);

    await ours.call('DELETE', `/v1/webhooks/${hook}`);
    const { html } = await ada.get('/dashboard/audit');
    assert.ok(!html.includes(`href="/dashboard/webhooks/${hook}"`), 'its page is gone');
    assert.equal(html.split(`<code>${hook}</code>`).length, 3);
    assert.ok(html.includes(`href="/dashboard/domains/${domain}"`), 'others keep their links');
  });
});
