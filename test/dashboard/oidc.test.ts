import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { unlinkOidc } from '../../src/accounts/user-accounts.ts';
import { createUser } from '../../src/accounts/users.ts';
import { invite } from '../../src/accounts/invitations.ts';
import { makeFlowCookie, OIDC_CALLBACK, OIDC_SIGN_IN } from '../../src/dashboard/oidc-flow.ts';
import { oidcCookie } from '../../src/dashboard/session.ts';
import { findUserByEmail } from '../../src/store/accounts/users.ts';
import { SECRET_KEY, useService } from '../http/service.ts';
import { foundIn } from '../security/canaries.ts';
import { CLIENT } from '../support/oidc-issuer.ts';
import { PASSWORD, signedIn, textOf, visitor } from './visitor.ts';
import { personOf, useServiceWithIssuer } from './with-issuer.ts';

const { service, issuer, begin, signIn, signedInBy, restart } = await useServiceWithIssuer();
const { pool } = service;
const organization = await service.organization('Ours');

const auditOf = async (userId: string) => {
  const { rows } = await pool.query<{ action: string; actor_kind: string; detail: Record<string, unknown> }>(
    'SELECT action, actor_kind, detail FROM audit_log WHERE target = $1 ORDER BY at, id',
    [userId],
  );
  return rows;
};

const usersOf = async (email: string): Promise<number> => {
  const { rows } = await pool.query(`SELECT FROM users WHERE email = $1`, [email]);
  return rows.length;
};

describe('sign-in by OpenID Connect', () => {
  it('is offered on the sign-in page, and leads a member with a verified address to the requested page', async () => {
    const ada = await signedIn(service, organization.id);
    const browser = visitor(service);
    const page = await browser.get('/dashboard/sign-in?next=/dashboard/emails');
    assert.match(page.html, /href="\/dashboard\/sign-in\/oidc\?next=%2Fdashboard%2Femails"[^>]*>Sign in with/);
    const { status, location, headers } = await signIn(browser, personOf(ada.email.toUpperCase()), '/dashboard/emails');
    assert.deepEqual([status, location], [303, '/dashboard/emails']);
    assert.equal([headers['set-cookie']].flat().filter((line) => line?.startsWith('sendwright-oidc=;')).length, 1);
    assert.ok(textOf((await browser.get('/dashboard/account')).html).includes(ada.email));
    assert.deepEqual(await auditOf(ada.id), [
      { action: 'account.link-oidc', actor_kind: 'user', detail: { issuer: issuer.url } },
      { action: 'account.sign-in', actor_kind: 'user', detail: { address: '127.0.0.1', oidc: true } },
    ]);
  });

  it('finds the user by the subject afterwards, whatever the address is then', async () => {
    const [ada, bob] = [await signedIn(service, organization.id), await signedIn(service, organization.id)];
    const person = personOf(ada.email);
    await signedInBy(person);
    for (const change of [{ email: bob.email }, { email: 'new@example.com' }, { email_verified: false }]) {
      const browser = await signedInBy({ ...person, ...change });
      assert.ok(textOf((await browser.get('/dashboard/account')).html).includes(`Email ${ada.email}`), change.email);
    }
  });

  it('shows in the list of sessions, beside those by password', async () => {
    const ada = await signedIn(service, organization.id);
    const browser = await signedInBy(personOf(ada.email));
    const text = textOf((await browser.get('/dashboard/account')).html);
    assert.match(text, /This session Example Login 127\.0\.0\.1 .* Password 192\.0\.2\.1/);
  });

  it('ends the session that the browser had (fixation), and asks for no code of a second factor', async () => {
    const ada = await signedIn(service, organization.id);
    await pool.query(`INSERT INTO second_factors (user_id, sealed, confirmed_at) VALUES ($1, 'x', now())`, [ada.id]);
    const before = ada.cookie();
    assert.equal((await signIn(ada, personOf(ada.email))).status, 303);
    assert.equal((await ada.get('/dashboard')).status, 200);
    const old = visitor(service);
    old.take(before);
    assert.equal((await old.get('/dashboard')).status, 303);
  });

  for (const next of [
    'https://evil.example/',
    '//evil.example',
    '/dashboard/sign-out',
    `/dashboard/${'x'.repeat(5_000)}`,
  ]) {
    it(`redirects to short paths of the dashboard only: ${next.slice(0, 40)}`, async () => {
      const ada = await signedIn(service, organization.id);
      assert.equal((await signIn(visitor(service), personOf(ada.email), next)).location, '/dashboard');
    });
  }

  it('has no pages without an issuer', async () => {
    const other = await useService();
    for (const path of [OIDC_SIGN_IN, OIDC_CALLBACK]) assert.equal((await visitor(other).get(path)).status, 404);
    assert.ok(!(await visitor(other).get('/dashboard/sign-in')).html.includes(OIDC_SIGN_IN));
  });
});

describe('an identity that is not linked', () => {
  it('is refused without a verified address, with the same answer whether or not a user has it', async () => {
    const ada = await signedIn(service, organization.id);
    const answers = [];
    for (const email of [ada.email, 'nobody@example.com']) {
      const browser = visitor(service);
      const { status, html } = await signIn(browser, { sub: 'x', email, email_verified: false });
      assert.equal(status, 403);
      assert.equal(browser.cookie(), '');
      answers.push(textOf(html).replace(/req_\w+/, ''));
    }
    assert.equal(answers[0], answers[1]);
    assert.match(answers[0] ?? '', /Your identity provider does not confirm your email address\./);
    assert.deepEqual(await auditOf(ada.id), []);
  });

  it('is refused for an address without user and invitation, and creates no user', async () => {
    const browser = visitor(service);
    const { status, html } = await signIn(browser, personOf('stranger@example.com'));
    assert.equal(status, 403);
    assert.match(textOf(html), /No account has the address stranger@example\.com; ask for an invitation\./);
    assert.equal(browser.cookie(), '');
    assert.equal(await usersOf('stranger@example.com'), 0);
  });

  it('is refused for a user with another identity, until the operator unlinks that one', async () => {
    const ada = await signedIn(service, organization.id);
    const [first, second] = [personOf(ada.email), personOf(ada.email)];
    const old = await signedInBy(first);
    const browser = visitor(service);
    const { status, html } = await signIn(browser, second);
    assert.equal(status, 403);
    assert.match(textOf(html), /Another identity is linked to the account/);
    const entries = await auditOf(ada.id);
    assert.deepEqual(entries.at(-1), {
      action: 'account.sign-in-failed',
      actor_kind: 'system',
      detail: { address: '127.0.0.1', oidc: true, reason: 'another identity is linked' },
    });
    const { email, id } = ada;
    assert.deepEqual(await unlinkOidc(pool, { email }), { id, email, removed: 1, sessions_ended: 2 });
    assert.equal((await old.get('/dashboard')).status, 303);
    assert.equal((await signIn(browser, second)).status, 303);
    assert.equal((await signIn(visitor(service), first)).status, 403);
  });

  it('of an invited address becomes a user, and a member only by accepting', async () => {
    const email = 'invited@example.com';
    await invite(pool, organization.id, email, 'viewer');
    const browser = visitor(service);
    assert.equal((await signIn(browser, personOf(email))).location, '/dashboard/my-invitations');
    assert.equal((await browser.get('/dashboard')).status, 403, 'not a member yet');
    const own = await browser.get('/dashboard/my-invitations');
    const [, path = ''] = /action="([^"]+\/accept)"/.exec(own.html) ?? [];
    assert.ok(textOf((await browser.change(path)).html).includes('Welcome to Ours.'));
    const user = (await findUserByEmail(pool, email)) ?? assert.fail('there is no user');
    assert.notEqual(user.proved_at, null);
  });

  it('comes back to the link of an invitation, and accepts it there', async () => {
    const email = 'linked@example.com';
    const { token } = await invite(pool, organization.id, email, 'member');
    const path = `/dashboard/invitations/${token}`;
    const browser = visitor(service);
    assert.ok((await browser.get(path)).html.includes(`${OIDC_SIGN_IN}?next=${encodeURIComponent(path)}`));
    assert.equal((await signIn(browser, personOf(email), path)).location, path);
    assert.ok(textOf((await browser.change(path)).html).includes('Welcome to Ours.'));
  });

  it('takes over an account that was never confirmed: its password and sessions end', async () => {
    const ada = await signedIn(service, organization.id);
    await pool.query('UPDATE users SET proved_at = NULL WHERE id = $1', [ada.id]);
    await signedInBy(personOf(ada.email));
    assert.equal((await ada.get('/dashboard')).status, 303);
    const { status } = await visitor(service).post('/dashboard/sign-in', { email: ada.email, password: PASSWORD });
    assert.equal(status, 401);
  });

  it('confirms an account for which an invitation is open, which is then accepted', async () => {
    const ada = await signedIn(service, organization.id);
    await pool.query('UPDATE users SET proved_at = NULL WHERE id = $1', [ada.id]);
    const { token } = await invite(pool, (await service.organization('Next')).id, ada.email, 'member');
    const path = `/dashboard/invitations/${token}`;
    const { html } = await ada.get(path);
    assert.ok(textOf(html).includes('was never confirmed'), textOf(html));
    assert.ok(html.includes(`${OIDC_SIGN_IN}?next=${encodeURIComponent(path)}`), html);
    assert.equal((await signIn(ada, personOf(ada.email), path)).location, path);
    assert.ok(textOf((await ada.change(path)).html).includes('Welcome to Next.'));
  });
});

describe('the callback', () => {
  it('needs the cookie of the browser that began, unexpired and sealed by us', async () => {
    const ada = await signedIn(service, organization.id);
    const browser = visitor(service);
    const cookies = makeFlowCookie(SECRET_KEY);
    const flow = { state: 'a', nonce: 'b', codeVerifier: 'c' };
    for (const cookie of [
      undefined,
      'forged',
      makeFlowCookie('another secret key of 32 characters').write(flow, '/dashboard', Date.now()),
      cookies.write(flow, '/dashboard', Date.now() - 601_000),
    ]) {
      const url = issuer.approve(await begin(browser), personOf(ada.email));
      browser.take(cookie === undefined ? 'x=y' : `sendwright-oidc=${cookie}`);
      const { status, html } = await browser.get(url);
      assert.equal(status, 401, cookie);
      assert.match(textOf(html), /took too long, or it was begun in another browser\. Sign in with Example Login/);
      assert.equal(browser.cookie(), '');
    }
  });

  it('signs nobody in by the code of another browser, nor by one that was used', async () => {
    const ada = await signedIn(service, organization.id);
    const [victim, attacker] = [visitor(service), visitor(service)];
    await begin(victim);
    const url = issuer.approve(await begin(attacker), personOf(ada.email));
    assert.equal((await victim.get(url)).status, 401);
    assert.equal(victim.cookie(), '');
    const browser = visitor(service);
    const own = issuer.approve(await begin(browser), personOf('used@example.com'));
    await invite(pool, organization.id, 'used@example.com', 'viewer');
    const replay = visitor(service);
    replay.take(browser.flowCookie());
    assert.equal((await browser.get(own)).status, 303);
    assert.equal((await replay.get(own)).status, 401);
  });

  it('explains a canceled sign-in and removes its cookie', async () => {
    const browser = visitor(service);
    const denied = { redirect: { error: 'access_denied', code: undefined } };
    const { status, html, headers } = await signIn(browser, personOf('x@example.com'), '/dashboard/emails', denied);
    assert.equal(status, 401);
    assert.match(textOf(html), /You are not signed in Example Login denied access\. Sign in with Example Login/);
    assert.ok(html.includes('next=%2Fdashboard%2Femails'));
    assert.match(String(headers['set-cookie']), /^sendwright-oidc=; .*Max-Age=0$/);
  });

  it('counts failures as attempts to sign in from the network, and no success', async () => {
    const counted = async () => {
      const { rows } = await pool.query<{ attempts: number }>(
        `SELECT attempts FROM sign_in_attempts WHERE kind = 'network'`,
      );
      return rows[0]?.attempts ?? 0;
    };
    const ada = await signedIn(service, organization.id);
    const before = await counted();
    await signedInBy(personOf(ada.email));
    assert.equal(await counted(), before);
    await signIn(visitor(service), personOf('stranger@example.com'));
    assert.equal(await counted(), before + 1);
    await pool.query(`UPDATE sign_in_attempts SET attempts = 60 WHERE kind = 'network'`);
    const limited = await signIn(visitor(service), personOf(ada.email));
    assert.equal(limited.status, 429);
    await pool.query('DELETE FROM sign_in_attempts');
  });

  it('keeps its cookie from scripts and other sites, for ten minutes, and with https from sibling domains', async () => {
    const { headers } = await visitor(service).get(OIDC_SIGN_IN);
    assert.match(
      String(headers['set-cookie']),
      /^sendwright-oidc=[\w-]{100,1000}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
    );
    assert.equal(
      oidcCookie('https://mail.example.com', 'x'),
      '__Host-sendwright-oidc=x; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure',
    );
  });
});

describe('while the issuer is down', () => {
  it('the page names the reason, the log too, and passwords work', async () => {
    const email = 'patient@example.com';
    await createUser(pool, organization.id, { email, password: PASSWORD });
    const browser = visitor(service);
    const url = issuer.approve(await begin(browser), personOf(email));
    const from = service.log.length;
    issuer.setDown(true);
    const late = await browser.get(url);
    restart();
    const down = await browser.get(OIDC_SIGN_IN);
    issuer.setDown(false);
    for (const { status, html } of [late, down]) {
      assert.equal(status, 503);
      assert.match(textOf(html), /Example Login cannot be reached \([A-Z_]+\)\. Sign in with Example Login Back to/);
    }
    const lines = service.log.slice(from).filter((line) => line.includes('identity provider unreachable'));
    assert.equal(lines.length, 2);
    assert.match(lines[0] ?? '', /"reason":"[A-Z_]+"/);
    const { rows } = await pool.query(`SELECT FROM sign_in_attempts WHERE kind = 'network' AND attempts > 0`);
    assert.equal(rows.length, 0, 'the network is not to blame');
    await browser.signIn(email, PASSWORD);
    assert.equal((await browser.get(OIDC_SIGN_IN)).status, 303, 'it works again');
  });
});

describe('the log', () => {
  it('contains no code, token, state or secret of the sign-ins', () => {
    const text = service.log.join('');
    assert.ok(issuer.secrets.length > 20);
    const named = Object.fromEntries(issuer.secrets.map((secret, index) => [String(index), secret]));
    assert.deepEqual(foundIn(text, { ...named, client: CLIENT.secret }), []);
    assert.doesNotMatch(text, /[?&](?:code|state|next)=/);
    assert.ok(text.includes('OIDC sign-in refused') && !text.includes('@example.com'), 'nor an address');
  });
});
