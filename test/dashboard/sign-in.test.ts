import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { digest } from '../../src/lib/digest.ts';
import { startPasswordSession } from '../../src/accounts/sign-in.ts';
import { createUser, recoverAccount } from '../../src/accounts/users.ts';
import { findUserByEmail } from '../../src/store/accounts/users.ts';
import { startService, useService } from '../http/service.ts';
import { PASSWORD, signedIn, textOf, visitor } from './visitor.ts';

const service = await useService();
const organization = await service.organization('Ada & <Söhne>');

describe('signing in', () => {
  it('leads to the overview of the organization, whose name is shown as text', async () => {
    await createUser(service.pool, organization.id, { email: 'Ada@Example.com', password: PASSWORD });
    const ada = visitor(service);
    const { status, location, headers } = await ada.post('/dashboard/sign-in', {
      email: ' ADA@example.com ',
      password: PASSWORD,
    });
    assert.deepEqual([status, location], [303, '/dashboard']);
    const [session, browser] = [headers['set-cookie']].flat();
    assert.match(String(session), /^sendwright=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=2592000$/);
    assert.match(
      String(browser),
      /^sendwright-browser=[\w-]{22}\.\d{13}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=15552000$/,
    );
    const page = await ada.get('/dashboard');
    assert.equal(page.status, 200);
    assert.match(page.html, /^<!doctype html><html lang="en">/);
    assert.ok(textOf(page.html).includes('Ada & <Söhne>'), textOf(page.html));
    assert.ok(!page.html.includes('<Söhne>'), 'a name is escaped');
  });

  it('is required by a page, whose address the form keeps', async () => {
    const anonymous = visitor(service);
    const asked = await anonymous.get('/dashboard/audit?cursor=x');
    assert.deepEqual(
      [asked.status, asked.location],
      [303, '/dashboard/sign-in?next=%2Fdashboard%2Faudit%3Fcursor%3Dx'],
    );
    const form = await anonymous.get(asked.location ?? '');
    assert.match(form.html, /name="next" value="\/dashboard\/audit\?cursor=x"/);
  });

  for (const next of [
    'https://evil.example/dashboard',
    '//evil.example/dashboard',
    '/\\evil.example/dashboard',
    '/v1/emails',
    '/dashboard/sign-out',
  ]) {
    it(`redirects to the dashboard only: ${next}`, async () => {
      const { email } = await signedIn(service, organization.id);
      const browser = visitor(service);
      const { location } = await browser.post('/dashboard/sign-in', { email, password: PASSWORD, next });
      assert.equal(location, '/dashboard');
      const again = await browser.get(`/dashboard/sign-in?next=${encodeURIComponent(next)}`);
      assert.deepEqual([again.status, again.location], [303, '/dashboard']);
    });
  }

  it('is refused with the same message for a wrong password and an unknown email', async () => {
    const { email } = await signedIn(service, organization.id);
    const anonymous = visitor(service);
    const wrong = await anonymous.post('/dashboard/sign-in', { email, password: 'wrong' });
    const unknown = await anonymous.post('/dashboard/sign-in', { email: 'nobody@example.com', password: 'wrong' });
    assert.deepEqual([wrong.status, unknown.status], [401, 401]);
    assert.equal(textOf(wrong.html), textOf(unknown.html));
    assert.ok(wrong.html.includes(`value="${email}"`), 'the email stays');
    assert.equal(anonymous.cookie(), '');
    const empty = await anonymous.post('/dashboard/sign-in', { email: '', password: '' });
    assert.equal(empty.status, 422);
    assert.match(empty.html, /id="field-email-problem"/);
  });

  it('does as much work for an unknown email as for a known one', async () => {
    const { email } = await signedIn(service, organization.id);
    const time = async (name: string) => {
      const start = process.cpuUsage();
      await visitor(service).post('/dashboard/sign-in', { email: name, password: 'wrong' });
      const { user, system } = process.cpuUsage(start);
      return user + system;
    };
    const [known, unknown] = [await time(email), await time('unknown@example.org')];
    assert.ok(unknown > known / 3, `${unknown} µs against ${known} µs`);
  });

  it('returns 429 after ten failures, also for the right password', async () => {
    const { email, browserCookie, signIn } = await signedIn(service, organization.id);
    await signIn(email, PASSWORD);
    const anonymous = visitor(service);
    const tries = await Promise.all(
      Array.from({ length: 12 }, () => anonymous.post('/dashboard/sign-in', { email, password: 'wrong' })),
    );
    const statuses = tries.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [...Array<number>(10).fill(401), 429, 429]);
    const right = await anonymous.post('/dashboard/sign-in', { email, password: PASSWORD });
    assert.equal(right.status, 429);
    const seconds = Number(right.headers['retry-after']);
    assert.ok(seconds > 0 && seconds <= 900, String(seconds));

    // A known browser may still sign in; a forged cookie does not count.
    const own = visitor(service);
    own.take(browserCookie().replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')));
    assert.equal((await own.post('/dashboard/sign-in', { email, password: PASSWORD })).status, 429);
    own.take(browserCookie());
    await own.signIn(email, PASSWORD);
    // A quarter of an hour later.
    await service.pool.query(`UPDATE sign_in_attempts SET expires_at = now() WHERE kind <> 'pair_day'`);
    await anonymous.signIn(email, PASSWORD);
  });

  it('limits failures in a known browser there only', async () => {
    const ada = await signedIn(service, organization.id);
    await ada.signIn(ada.email, PASSWORD);
    assert.equal((await ada.post('/dashboard/sign-in', { email: ada.email, password: 'wrong' })).status, 401);
    await service.pool.query(`UPDATE sign_in_attempts SET attempts = 10 WHERE kind = 'browser'`);
    assert.equal((await ada.post('/dashboard/sign-in', { email: ada.email, password: PASSWORD })).status, 429);
    await visitor(service).signIn(ada.email, PASSWORD);
  });

  it('stores digests only, and adds no rows after a network reached its limit', async () => {
    await service.pool.query(`DELETE FROM sign_in_attempts`);
    const anonymous = visitor(service);
    const typed = Array.from({ length: 200 }, (_, i) => `random-${i}@example.com`);
    const enter = (email: string) => anonymous.post('/dashboard/sign-in', { email, password: 'x' });
    await enter('random-0@example.com');
    const text = async () => {
      const { rows } = await service.pool.query<{ row: string }>(
        `SELECT sign_in_attempts::text || encode(subject, 'escape') AS row FROM sign_in_attempts
         UNION ALL SELECT sign_in_failures::text FROM sign_in_failures`,
      );
      return rows.map(({ row }) => row);
    };
    assert.equal((await text()).length, 5, 'two rows of the network and three of the email');
    assert.ok(!(await text()).some((row) => row.includes('random-') || row.includes('127.0.0.1')), 'only digests');
    await service.pool.query(`UPDATE sign_in_attempts SET attempts = 60 WHERE kind = 'network'`);
    const statuses = await Promise.all(typed.map(async (email) => (await enter(email)).status));
    assert.deepEqual(new Set(statuses), new Set([429]));
    assert.equal((await text()).length, 5, 'no row is added');
    await service.pool.query(`DELETE FROM sign_in_attempts`);
  });

  it('refuses an email with NUL as an unknown one', async () => {
    const anonymous = visitor(service);
    for (const email of ['a\0@example.com', '\0']) {
      const { status, html } = await anonymous.post('/dashboard/sign-in', { email, password: 'x' });
      assert.deepEqual([status, textOf(html).includes('email or password is not right')], [401, true], email);
    }
  });

  it('takes an email whose domain is written in Unicode', async () => {
    const { id } = await service.organization('Bücher');
    const { id: userId } = await signedIn(service, id);
    await service.pool.query(`UPDATE users SET email = 'ada@xn--bcher-kva.example' WHERE id = $1`, [userId]);
    for (const email of ['ada@bücher.example', 'ADA@BÜCHER.example', 'ada@xn--bcher-kva.example']) {
      assert.equal(
        (await visitor(service).post('/dashboard/sign-in', { email, password: PASSWORD })).status,
        303,
        email,
      );
    }
  });

  it('is recorded in the audit log, with failures and sign-outs', async () => {
    const { id } = await service.organization('Audited sign-ins');
    const ada = await signedIn(service, id);
    await ada.signIn(ada.email, PASSWORD);
    await visitor(service).post('/dashboard/sign-in', { email: ada.email, password: 'wrong' });
    await ada.post('/dashboard/sign-out');
    await ada.signIn(ada.email, PASSWORD);
    const { rows } = await service.pool.query(
      `SELECT action, actor_kind, target, detail FROM audit_log WHERE org_id = $1 AND action LIKE 'account.%' ORDER BY at, id`,
      [id],
    );
    const entry = (action: string, kind: string, detail: object) => {
      return { action: `account.${action}`, actor_kind: kind, target: ada.id, detail };
    };
    assert.deepEqual(rows, [
      entry('sign-in', 'user', { address: '127.0.0.1', known_browser: false }),
      entry('sign-in-failed', 'system', { address: '127.0.0.1', known_browser: false }),
      entry('sign-out', 'user', {}),
      entry('sign-in', 'user', { address: '127.0.0.1', known_browser: true }),
    ]);
  });
});

describe('a session', () => {
  it('has a new token at each sign-in, and the old one is worth nothing (fixation)', async () => {
    const ada = await signedIn(service, organization.id);
    const before = ada.cookie();
    await ada.signIn(ada.email, PASSWORD);
    assert.notEqual(ada.cookie(), before);
    const other = visitor(service);
    other.take(before);
    assert.equal((await other.get('/dashboard')).status, 303);
    // A token chosen by an attacker never becomes a session.
    const chosen = `sendwright=${'a'.repeat(43)}`;
    other.take(chosen);
    await other.signIn(ada.email, PASSWORD);
    assert.notEqual(other.cookie(), chosen);
  });

  it('does not begin by a password that was changed while it was being checked', async () => {
    const ada = await signedIn(service, organization.id);
    const user = await findUserByEmail(service.pool, ada.email);
    assert.ok(user);
    const start = () => startPasswordSession(service.pool, user, { address: '127.0.0.1', userAgent: undefined }, {});
    assert.equal(typeof (await start()), 'string');
    await recoverAccount(service.pool, user, 'another hash');
    assert.equal(await start(), undefined);
    const { rowCount } = await service.pool.query('SELECT FROM sessions WHERE user_id = $1', [ada.id]);
    assert.equal(rowCount, 0);
  });

  it('ends on the server when one signs out', async () => {
    const ada = await signedIn(service, organization.id);
    const cookie = ada.cookie();
    await ada.change('/dashboard/sign-out');
    assert.equal(ada.cookie(), '');
    ada.take(cookie);
    assert.equal((await ada.get('/dashboard')).status, 303);
  });

  it('ends in every browser if its user signs out everywhere', async () => {
    const ada = await signedIn(service, organization.id);
    const elsewhere = visitor(service);
    await elsewhere.signIn(ada.email, PASSWORD);
    const out = await ada.change('/dashboard/account/sign-out');
    assert.ok(textOf(out.html).includes('Sign in'), textOf(out.html));
    for (const each of [ada, elsewhere]) assert.equal((await each.get('/dashboard')).status, 303);
  });

  it('leads a form that was submitted after its end back to its page, and states that nothing was changed', async () => {
    const ada = await signedIn(service, organization.id);
    await service.pool.query(`DELETE FROM sessions WHERE user_id = $1`, [ada.id]);
    const form = `${service.url}/dashboard/webhooks/new?x=1`;
    const { location = '' } = await ada.post('/dashboard/webhooks/new', { url: 'x' }, { referer: form });
    const asked = await ada.get(location);
    assert.ok(textOf(asked.html).includes('Your session has ended, so nothing was changed.'), textOf(asked.html));
    assert.ok(asked.html.includes('name="next" value="/dashboard/webhooks/new?x=1"'), 'the page of the form');
    for (const referer of ['https://evil.example//evil.example/dashboard', 'no URL', `${service.url}/docs`]) {
      const { location: next } = await ada.post('/dashboard/webhooks/new', {}, { referer });
      assert.equal(next, '/dashboard/sign-in?ended=true', referer);
    }
    const { html } = await ada.get('/dashboard/sign-in');
    assert.ok(!html.includes('has ended'), 'not on other visits');
  });

  it('ends after 7 days without use, and after 30 in any case', async () => {
    const ada = await signedIn(service, organization.id);
    const sha256 = digest(ada.cookie().split('=')[1] ?? '');
    const age = async (columns: string) => {
      await service.pool.query(`UPDATE sessions SET ${columns} WHERE sha256 = $1`, [sha256]);
      return (await ada.get('/dashboard')).status;
    };
    const left = async () => {
      const { rows } = await service.pool.query<{ days: number }>(
        `SELECT round(extract(epoch FROM expires_at - now()) / 86400)::integer AS days FROM sessions WHERE sha256 = $1`,
        [sha256],
      );
      return rows[0]?.days;
    };
    assert.equal(await left(), 7);
    assert.equal(await age(`created_at = now() - interval '28 days', last_seen_at = now() - interval '6 days'`), 200);
    assert.equal(await left(), 2);
    assert.equal(await age(`expires_at = now() - interval '1 second'`), 303);
  });
});

describe('where PUBLIC_URL is https', () => {
  it('the cookie is __Host-, Secure, HttpOnly and SameSite, and a plain one opens nothing', async (t) => {
    const secure = await startService({ publicUrl: 'https://mail.example.com' });
    t.after(() => secure.close());
    const { id } = await secure.organization();
    await createUser(secure.pool, id, { email: 'ada@example.com', password: PASSWORD });
    const ada = visitor(secure);
    const signed = await ada.post(
      '/dashboard/sign-in',
      { email: 'ada@example.com', password: PASSWORD },
      { origin: 'https://mail.example.com' },
    );
    const [session, browser] = [signed.headers['set-cookie']].flat();
    assert.match(
      String(session),
      /^__Host-sendwright=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+; Secure$/,
    );
    assert.match(
      String(browser),
      /^__Host-sendwright-browser=[\w.-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=\d+; Secure$/,
    );
    assert.equal((await ada.get('/dashboard')).status, 200);
    ada.take(ada.cookie().replace('__Host-', ''));
    assert.equal((await ada.get('/dashboard')).status, 303);
  });
});
