import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createUser } from '../../src/accounts/users.ts';
import { harnessWithProvider } from '../delivery/harness.ts';
import { useService } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';
import { foundIn } from '../security/canaries.ts';
import { deliverTo, emailsTo, pathIn, PUBLIC_URL, startWithAccountEmails, SYSTEM_DOMAIN } from './account-mail.ts';
import { PASSWORD, type Person, signedIn, textOf, visitor } from './visitor.ts';

const { service, operator } = await startWithAccountEmails();
after(() => service.close());
const organization = await service.organization('Ours');
const NEW = 'another password';

/** Requests a reset and reads the link from the email. */
async function linkFor(email: string): Promise<string> {
  const before = (await emailsTo(service, email)).length;
  const asked = await visitor(service).post('/dashboard/forgot-password', { email });
  assert.deepEqual([asked.status, asked.location], [303, '/dashboard/forgot-password/sent']);
  await eventually('another email', async () => (await emailsTo(service, email)).length > before);
  return pathIn(await deliverTo(service, operator.id, email));
}

async function withoutLimits(): Promise<void> {
  await service.pool.query('DELETE FROM sign_in_attempts');
}

const ask = (email: string) => visitor(service).post('/dashboard/forgot-password', { email });

describe('a password reset', () => {
  it('changes the password once, by a link that the email alone contains, and ends all sessions', async () => {
    const ada = await signedIn(service, organization.id);
    const path = await linkFor(ada.email);
    assert.match(path, /^\/dashboard\/reset-password\/[\w-]{43}$/);

    const browser = visitor(service);
    assert.ok(textOf((await browser.get(path)).html).includes('Choose a new password'));
    assert.ok(textOf((await browser.get(path)).html).includes('Choose a new password'), 'looking uses nothing up');
    const weak = await browser.post(path, { password: 'short' });
    assert.equal(weak.status, 422);
    assert.match(weak.html, /id="field-password-problem"[^>]*>must be 8 to 200 characters/);
    const done = await browser.post(path, { password: NEW });
    assert.equal(done.status, 200, textOf(done.html));
    assert.ok(textOf(done.html).includes('Your password was changed'), textOf(done.html));

    assert.equal((await ada.get('/dashboard')).status, 303, 'its session has ended');
    assert.equal((await browser.post(path, { password: PASSWORD })).status, 404, 'a link works once');
    assert.equal((await browser.get(path)).status, 404);
    assert.equal((await browser.post('/dashboard/sign-in', { email: ada.email, password: PASSWORD })).status, 401);
    await browser.signIn(ada.email, NEW);
  });

  it('is written to the audit logs of the user’s organizations', async () => {
    const ada = await signedIn(service, organization.id);
    const path = await linkFor(ada.email);
    await visitor(service).post(path, { password: NEW });
    const { rows } = await service.pool.query(
      'SELECT org_id, actor_kind, actor_id, action, detail FROM audit_log WHERE target = $1 ORDER BY at, id',
      [ada.id],
    );
    assert.deepEqual(rows, [
      {
        ...{ org_id: organization.id, actor_kind: 'system', actor_id: 'dashboard' },
        ...{ action: 'account.request-reset', detail: {} },
      },
      {
        ...{ org_id: organization.id, actor_kind: 'user', actor_id: ada.id },
        ...{ action: 'account.reset-password', detail: { sessions: 1 } },
      },
    ]);
  });

  it('ends when an hour has passed, when another link was used, and when the password changes', async () => {
    const ada = await signedIn(service, organization.id);
    const [first, second] = [await linkFor(ada.email), await linkFor(ada.email)];
    assert.notEqual(first, second);
    const pass = (minutes: number) =>
      service.pool.query('UPDATE password_resets SET expires_at = expires_at - make_interval(mins => $1)', [minutes]);
    await pass(55);
    assert.equal((await visitor(service).get(first)).status, 200);
    await pass(5);
    assert.equal((await visitor(service).post(first, { password: NEW })).status, 404);
    await withoutLimits();
    const [third, fourth] = [await linkFor(ada.email), await linkFor(ada.email)];
    assert.equal((await visitor(service).post(fourth, { password: NEW })).status, 200);
    assert.equal((await visitor(service).get(third)).status, 404);

    const bob = await signedIn(service, organization.id);
    const link = await linkFor(bob.email);
    await bob.change('/dashboard/account/password', { current: PASSWORD, password: NEW });
    assert.equal((await visitor(service).get(link)).status, 404);
  });

  it('answers an unknown address alike, and sends it nothing', async () => {
    const { email } = await signedIn(service, organization.id);
    await withoutLimits();
    const [known, unknown] = [await ask(email), await ask('nobody@example.com')];
    assert.deepEqual([unknown.status, unknown.location, unknown.html], [known.status, known.location, known.html]);
    const bare = ({ headers }: Awaited<ReturnType<typeof ask>>) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => !['date', 'x-request-id'].includes(name)));
    assert.deepEqual(bare(unknown), bare(known));
    await deliverTo(service, operator.id, email);
    assert.deepEqual(await emailsTo(service, 'nobody@example.com'), []);
    assert.equal((await ask('no address')).status, 422);
  });

  it('is limited by address and network, whether or not a user has the address', async () => {
    await withoutLimits();
    const { email } = await signedIn(service, organization.id);
    for (const address of [email, 'nobody-2@example.com']) {
      for (let i = 0; i < 3; i++) assert.equal((await ask(address)).status, 303);
      const refused = await ask(address);
      assert.equal(refused.status, 429);
      assert.ok(textOf(refused.html).includes('Too many attempts. Try again in'), textOf(refused.html));
      assert.ok(Number(refused.headers['retry-after']) > 0);
    }
    await service.pool.query(`UPDATE sign_in_attempts SET attempts = 20 WHERE kind = 'reset_network'`);
    assert.equal((await ask('nobody-3@example.com')).status, 429);
    await withoutLimits();
  });

  it('confirms the address of an account that another person may have created', async () => {
    const { rows: before } = await service.pool.query<{ id: string }>(
      `INSERT INTO users (id, email, name, password) VALUES ('usr_unproved', 'cto@victim.example', '', 'scrypt$1$1$1$x$x')
       RETURNING id`,
    );
    const path = await linkFor('cto@victim.example');
    assert.equal((await visitor(service).post(path, { password: NEW })).status, 200);
    const { rows } = await service.pool.query('SELECT proved_at IS NOT NULL AS proved FROM users WHERE id = $1', [
      before[0]?.id,
    ]);
    assert.deepEqual(rows, [{ proved: true }]);
  });

  it('does not depend on the Host of the request, which an attacker chooses', async () => {
    const { email } = await signedIn(service, organization.id);
    await withoutLimits();
    const host = { host: 'evil.example', origin: 'http://evil.example' };
    assert.equal((await visitor(service).post('/dashboard/forgot-password', { email }, host)).status, 303);
    const { text, html } = await deliverTo(service, operator.id, email);
    assert.ok(text?.includes(`${PUBLIC_URL}/dashboard/reset-password/`), text ?? '');
    assert.ok(!`${text}${html}`.includes('evil'), text ?? '');
  });
});

describe('the link of a password reset', () => {
  /** Everything that a member of the sending organization can read about an email. */
  async function readable(person: Person, id: string): Promise<string> {
    const pages = [
      `/dashboard/emails/${id}`,
      `/dashboard/emails/${id}/html`,
      '/dashboard/emails',
      '/dashboard/webhooks',
    ];
    const shown = await Promise.all(pages.map(async (path) => (await person.get(path)).html));
    const api = await Promise.all(
      [`/v1/emails/${id}`, `/v1/emails/${id}/content`].map(async (path) => (await operator.call('GET', path)).text),
    );
    return [...shown, ...api].join('\n');
  }

  it('is not shown to the organization that sends it, not logged, and stored as a digest and sealed', async () => {
    const { email } = await createUser(service.pool, organization.id, { email: 'reader@example.com' });
    const path = await linkFor(email);
    const token = path.split('/').at(-1) ?? '';
    assert.equal((await visitor(service).get(path)).status, 200);
    const [id = ''] = await emailsTo(service, email);
    const text = await readable(await signedIn(service, operator.id), id);
    assert.ok(text.includes('Reset your Sendwright password'), 'the email is shown');
    assert.ok(text.includes('{{{account_link}}}'), 'with a placeholder');
    assert.deepEqual(foundIn(text, { token }), []);
    assert.deepEqual(foundIn(service.log.join('\n'), { token }), []);
    const { rows } = await service.pool.query<{ row: string }>(
      `SELECT to_jsonb(t)::text AS row FROM password_resets AS t UNION ALL SELECT to_jsonb(t)::text FROM account_links AS t
       UNION ALL SELECT to_jsonb(t)::text FROM email_bodies AS t UNION ALL SELECT to_jsonb(t)::text FROM webhook_events AS t`,
    );
    assert.deepEqual(foundIn(rows.map(({ row }) => row).join('\n'), { token }), []);
  });

  it('is in no resent email, because members of that organization cannot resend it', async () => {
    const { email } = await createUser(service.pool, organization.id, { email: 'again@example.com' });
    await linkFor(email);
    const [id = ''] = await emailsTo(service, email);
    const member = await signedIn(service, operator.id);
    for (const request_id of ['with its link', 'without its link']) {
      const { status, html } = await member.post(`/dashboard/emails/${id}/again`, { request_id });
      assert.equal(status, 409);
      assert.ok(textOf(html).includes('The link in this email is not stored with it'), textOf(html));
      const shown = (await member.get(`/dashboard/emails/${id}`)).html;
      assert.ok(!shown.includes(`/dashboard/emails/${id}/again`), 'it is not offered');
      assert.ok(textOf(shown).includes('The link in this email is not stored with it'), textOf(shown));
      await service.pool.query('DELETE FROM account_links WHERE email_id = $1', [id]);
    }
    assert.equal((await emailsTo(service, email)).length, 1);
  });

  it('fails its email if it has expired before the email is sent', async () => {
    const { email } = await createUser(service.pool, organization.id, { email: 'expired@example.com' });
    await ask(email);
    const id = await eventually('an email', async () => (await emailsTo(service, email))[0]);
    await service.pool.query('DELETE FROM account_links WHERE email_id = $1', [id]);
    const { provider, deliverOne, email: row } = harnessWithProvider(service.pool, operator.id);
    assert.deepEqual(await deliverOne({ id, version: 0 }), { id, state: 'ended', status: 'failed' });
    assert.equal((await row(id)).error, 'This email cannot be sent: its link has expired.');
    assert.equal(provider.calls.length, 0);
  });

  it('does not affect a customer’s email that contains its placeholder, nor a resend of it', async () => {
    const text = '{{{account_link}}}';
    const send = async (to: string, headers: Record<string, string>, isBatch = false) => {
      const email = { from: `a@${SYSTEM_DOMAIN}`, to, subject: 'Templates', html: `<p>${text}</p>`, text, headers };
      const json = isBatch ? { emails: [email] } : email;
      assert.equal((await operator.call('POST', `/v1/emails${isBatch ? '/batch' : ''}`, { json })).status, 202);
      assert.equal((await deliverTo(service, operator.id, to)).text, text);
    };
    await send('one@example.net', { 'Auto-Submitted': 'auto-generated' });
    await send('member@example.net', { 'Auto-Submitted': 'auto-generated' }, true);
    await send('two@example.net', {});
    const [id = ''] = await emailsTo(service, 'two@example.net');
    const member = await signedIn(service, operator.id);
    await member.change(`/dashboard/emails/${id}/again`, { request_id: 'a' });
    assert.equal((await emailsTo(service, 'two@example.net')).length, 2);
    assert.equal((await deliverTo(service, operator.id, 'two@example.net')).text, text);
  });

  it('is not tracked by the provider, whose reports of clicks would contain it', async () => {
    const { email } = await createUser(service.pool, organization.id, { email: 'untracked@example.com' });
    await ask(email);
    await service.pool.query(`UPDATE domains SET open_tracking = true, click_tracking = true WHERE name = $1`, [
      SYSTEM_DOMAIN,
    ]);
    const { isTracked, tracking } = await deliverTo(service, operator.id, email);
    assert.deepEqual({ isTracked, tracking }, { isTracked: false, tracking: { opens: false, clicks: false } });
  });

  it('leaks through no Referer', async () => {
    const { email } = await createUser(service.pool, organization.id, { email: 'referer@example.com' });
    const path = await linkFor(email);
    const policy = async (method: 'get' | 'post') => (await visitor(service)[method](path)).headers['referrer-policy'];
    assert.deepEqual([await policy('get'), await policy('post')], ['strict-origin', 'strict-origin']);
  });
});

describe('without SYSTEM_EMAIL_FROM', () => {
  it('the page names the command of the operator, and nothing is sent', async () => {
    const plain = await useService();
    const ours = await plain.organization();
    const { email } = await signedIn(plain, ours.id);
    const browser = visitor(plain);
    const shown = await browser.get('/dashboard/forgot-password');
    assert.ok(textOf(shown.html).includes('npm run admin -- user reset'), textOf(shown.html));
    assert.doesNotMatch(shown.html, /<form/);
    await browser.post('/dashboard/forgot-password', { email });
    const { rows } = await plain.pool.query('SELECT FROM password_resets');
    assert.equal(rows.length, 0);
  });
});
