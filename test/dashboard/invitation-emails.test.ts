import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { useService } from '../http/service.ts';
import { suspendOrganization } from '../../src/accounts/suspension.ts';
import { insertIdentity } from '../../src/store/accounts/oidc-identities.ts';
import { eventually } from '../support/eventually.ts';
import { foundIn } from '../security/canaries.ts';
import { deliverTo, emailsTo, pathIn, startWithAccountEmails, SYSTEM_DOMAIN } from './account-mail.ts';
import { latestAudit, PASSWORD, signedIn, textOf, visitor } from './visitor.ts';

const { service, operator } = await startWithAccountEmails();
after(() => service.close());

const isProved = async (email: string) => {
  const { rows } = await service.pool.query<{ proved: boolean }>(
    'SELECT proved_at IS NOT NULL AS proved FROM users WHERE email = $1',
    [email],
  );
  return rows[0]?.proved;
};

describe('an invitation', () => {
  it('is emailed, and its link is not shown to the inviter', async () => {
    const ours = await service.organization('Ours & <Co>');
    const ada = await signedIn(service, ours.id);
    const page = await ada.change('/dashboard/members', { email: 'grace@example.com', role: 'viewer' });
    assert.ok(textOf(page.html).includes('The invitation was emailed to grace@example.com.'), textOf(page.html));
    const email = await deliverTo(service, operator.id, 'grace@example.com');
    assert.equal(email.from.address, `accounts@${SYSTEM_DOMAIN}`);
    assert.equal(email.subject, 'Invitation to Ours & <Co> on Sendwright');
    assert.ok(email.text?.includes(`${ada.email} invites you to join Ours & <Co>`), email.text ?? '');
    assert.ok(email.html?.includes('Ours &amp; &lt;Co&gt;'), email.html ?? '');
    const path = pathIn(email);
    assert.ok(email.html?.includes(`href="https://mail.example.com${path}"`), email.html ?? '');
    assert.deepEqual(foundIn(page.html + service.log.join('\n'), { token: path.split('/').at(-1) ?? '' }), []);

    const grace = visitor(service);
    await grace.change(path, { name: 'Grace', password: PASSWORD });
    assert.equal(await isProved('grace@example.com'), true, 'the holder of the address has the link');
  });

  it('confirms no address when its link was shown', async () => {
    const plain = await useService();
    const ours = await plain.organization();
    const ada = await signedIn(plain, ours.id);
    const { html } = await ada.post('/dashboard/members', { email: 'grace@example.com', role: 'viewer' });
    const [path = ''] = /\/dashboard\/invitations\/[\w-]{43}/.exec(html) ?? [];
    await visitor(plain).change(path, { name: 'Grace', password: PASSWORD });
    const { rows } = await plain.pool.query(`SELECT proved_at FROM users WHERE email = 'grace@example.com'`);
    assert.deepEqual(rows, [{ proved_at: null }]);
  });

  it('shows its link, with the reason, when it cannot be emailed, and then confirms no address', async () => {
    const ours = await service.organization('Unsent');
    const ada = await signedIn(service, ours.id);
    await service.pool.query(`UPDATE domains SET status = 'pending', trusted = false WHERE name = $1`, [SYSTEM_DOMAIN]);
    const shown = await ada.post('/dashboard/members', { email: 'heidi@example.com', role: 'viewer' });
    await service.pool.query(`UPDATE domains SET status = 'verified' WHERE name = $1`, [SYSTEM_DOMAIN]);
    assert.equal(shown.status, 200);
    assert.ok(textOf(shown.html).includes('no organization has verified the domain'), textOf(shown.html));
    const [path = ''] = /\/dashboard\/invitations\/[\w-]{43}/.exec(shown.html) ?? [];
    await visitor(service).change(path, { name: 'Heidi', password: PASSWORD });
    assert.equal(await isProved('heidi@example.com'), false);
  });

  it('shows its link when the address is suppressed, so that it would not be sent', async () => {
    const ours = await service.organization('Suppressed');
    const ada = await signedIn(service, ours.id);
    await operator.call('POST', '/v1/suppressions', { json: { email: 'oscar@example.com' } });
    const shown = await ada.post('/dashboard/members', { email: 'Oscar@example.com', role: 'viewer' });
    assert.ok(textOf(shown.html).includes('the address receives no email, because it is suppressed'));
    assert.match(shown.html, /\/dashboard\/invitations\/[\w-]{43}/);
    assert.deepEqual((await latestAudit(service, 'members.invite'))?.detail, {
      ...{ email: 'oscar@example.com', role: 'viewer', emailed: false },
    });
  });

  it('shows its link when the organization is suspended, which may send nothing to strangers', async () => {
    const ours = await service.organization('Suspended');
    const ada = await signedIn(service, ours.id);
    await suspendOrganization(service.pool, ours.id, null);
    const shown = await ada.post('/dashboard/members', { email: 'peggy@example.com', role: 'viewer' });
    assert.ok(textOf(shown.html).includes('this organization is suspended and may not send'), textOf(shown.html));
    assert.match(shown.html, /\/dashboard\/invitations\/[\w-]{43}/);
    assert.deepEqual(await emailsTo(service, 'peggy@example.com'), []);
  });

  it('that replaces an emailed one and is shown confirms no address', async () => {
    const ours = await service.organization('Replaced');
    const ada = await signedIn(service, ours.id);
    await ada.change('/dashboard/members', { email: 'ivan@example.com', role: 'viewer' });
    await service.pool.query(`UPDATE sign_in_attempts SET attempts = 10 WHERE kind = 'invite_email'`);
    const shown = await ada.post('/dashboard/members', { email: 'ivan@example.com', role: 'viewer' });
    assert.ok(textOf(shown.html).includes('too many invitations were emailed'), textOf(shown.html));
    assert.equal((await emailsTo(service, 'ivan@example.com')).length, 1);
    const [path = ''] = /\/dashboard\/invitations\/[\w-]{43}/.exec(shown.html) ?? [];
    await visitor(service).change(path, { name: 'Ivan', password: PASSWORD });
    assert.equal(await isProved('ivan@example.com'), false);
  });

  it('is accepted by an unconfirmed account only after a reset, which removes what another person added', async () => {
    const ada = await signedIn(service, (await service.organization('Inviting')).id);
    const judy = await signedIn(service, (await service.organization('Earlier')).id);
    await service.pool.query('UPDATE users SET proved_at = NULL WHERE id = $1', [judy.id]);
    await insertIdentity(service.pool, { issuer: 'https://login.example.com', subject: 'another person' }, judy.id);
    await ada.change('/dashboard/members', { email: judy.email, role: 'viewer' });
    const path = pathIn(await deliverTo(service, operator.id, judy.email));
    assert.ok(textOf((await judy.get(path)).html).includes('was never confirmed'));
    assert.equal((await judy.post(path)).status, 409);
    assert.equal(await isProved(judy.email), false);

    await visitor(service).post('/dashboard/forgot-password', { email: judy.email });
    await eventually('the second email', async () => (await emailsTo(service, judy.email)).length === 2);
    const reset = pathIn(await deliverTo(service, operator.id, judy.email));
    assert.equal((await visitor(service).post(reset, { password: 'another password' })).status, 200);
    assert.equal(await isProved(judy.email), true);
    const { rows } = await service.pool.query('SELECT FROM oidc_identities WHERE user_id = $1', [judy.id]);
    assert.equal(rows.length, 0);
    const holder = visitor(service);
    await holder.signIn(judy.email, 'another password');
    assert.ok(textOf((await holder.change(path)).html).includes('Welcome to Inviting.'));
  });

  it('is limited for each organization, since strangers get it', async () => {
    const ours = await service.organization('Many');
    const ada = await signedIn(service, ours.id);
    await ada.change('/dashboard/members', { email: 'first@example.com', role: 'viewer' });
    await service.pool.query(`UPDATE sign_in_attempts SET attempts = 200 WHERE kind = 'invite_org'`);
    const refused = await ada.post('/dashboard/members', { email: 'second@example.com', role: 'viewer' });
    assert.ok(textOf(refused.html).includes('too many invitations were emailed'), textOf(refused.html));
    assert.deepEqual(await emailsTo(service, 'second@example.com'), []);
  });

  it('is limited to 20 a day until somebody has accepted one', async () => {
    const ours = await service.organization('Newcomers');
    const ada = await signedIn(service, ours.id);
    const inviteTo = (email: string) => ada.change('/dashboard/members', { email, role: 'viewer' });
    await inviteTo('a1@example.com');
    await service.pool.query(`UPDATE sign_in_attempts SET attempts = 20 WHERE kind = 'invite_new'`);
    const refused = await ada.post('/dashboard/members', { email: 'a2@example.com', role: 'viewer' });
    assert.ok(textOf(refused.html).includes('too many invitations were emailed'), textOf(refused.html));
    assert.deepEqual(await emailsTo(service, 'a2@example.com'), []);
    const path = pathIn(await deliverTo(service, operator.id, 'a1@example.com'));
    await visitor(service).change(path, { name: 'First', password: PASSWORD });
    const { html } = await inviteTo('a3@example.com');
    assert.ok(textOf(html).includes('was emailed to a3@example.com'), textOf(html));
  });

  it('contains no name of the organization that a mail program makes a link of', async () => {
    const ours = await service.organization('Visit https://evil.example now');
    const ada = await signedIn(service, ours.id);
    await ada.change('/dashboard/members', { email: 'trent@example.com', role: 'viewer' });
    const email = await deliverTo(service, operator.id, 'trent@example.com');
    assert.equal(email.subject, 'Invitation to an organization on Sendwright');
    assert.ok(!`${email.text} ${email.html}`.includes('evil'), email.text ?? '');
  });
});
