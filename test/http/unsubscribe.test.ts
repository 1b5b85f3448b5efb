import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { EMAIL_STATUSES } from '../../src/domain/email/email.ts';
import { parseUnsubscribeToken, makeUnsubscribeTokens } from '../../src/domain/email/unsubscribe-token.ts';
import { project } from '../../src/projection/emails.ts';
import { force } from '../store/mail.ts';
import { assertRefused, SECRET_KEY, startService, useService } from './service.ts';
import { head, sendBytes } from './socket.ts';
import { eventsDuring } from './suppression-list.ts';

const service = await useService();
const ours = await service.organization();

const tokens = makeUnsubscribeTokens(SECRET_KEY);
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const ONE_CLICK = 'List-Unsubscribe=One-Click';
const FORM = 'application/x-www-form-urlencoded';

/** Sends a marketing email. @returns its recipient, and the token and path of the recipient's link */
async function sendMarketing(fields: object = {}, position = 0) {
  const id = await ours.sent({ marketing: true, ...fields });
  await project(service.pool, 'sent', [{ id }]);
  const { to } = (await ours.email(id)) as { to: string[] };
  const token = tokens.make({ orgId: ours.id, emailId: id, position });
  return { id, to: to[0] as string, token, path: `/unsubscribe/${token}` };
}

const post = (path: string, raw: string | Buffer = ONE_CLICK, type: string | null = FORM) =>
  service.call('POST', path, { raw, headers: type === null ? {} : { 'content-type': type } });
const visit = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(service.url + path, { method, headers: { accept: BROWSER, ...headers }, redirect: 'error' });

/** The origins of the address on the suppression list, and the events of the email after it was sent. */
async function stateOf(address: string, emailId: string): Promise<{ origins: string[]; events: string[] }> {
  const { body } = await ours.call('GET', `/v1/suppressions?email=${encodeURIComponent(address)}`);
  const { events } = (await ours.email(emailId)) as { events: { type: string }[] };
  return {
    origins: (body as { suppressions: { origin: string }[] }).suppressions.map(({ origin }) => origin),
    events: events.map(({ type }) => type).filter((type) => !['email.queued', 'email.sent'].includes(type)),
  };
}
const UNCHANGED = { origins: [], events: [] };
const UNSUBSCRIBED = { origins: ['unsubscribe'], events: ['email.unsubscribed'] };

describe('GET /unsubscribe/:token', () => {
  it('shows a page with a button and changes nothing, however often scanners request it', async () => {
    const { id, to, path } = await sendMarketing();
    const tables = ['suppressions', 'email_events', 'email_recipients', 'outbox', 'webhook_events', 'emails'];
    const counts = tables.map((table) => `(SELECT count(*) FROM ${table})`);
    const stored = async () =>
      (await service.pool.query<object>(`SELECT ${counts.map((n, i) => `${n} AS n${i}`).join()}`)).rows;
    const before = await stored();
    for (let i = 0; i < 20; i++) {
      const answer = await visit(path, {}, i % 2 === 0 ? 'GET' : 'HEAD');
      assert.equal(answer.status, 200);
      const text = await answer.text();
      if (i % 2 === 0) assert.match(text, /<form method="post">[^]*<button>Unsubscribe<\/button>/);
      else assert.equal(text, '');
    }
    assert.deepEqual(await stored(), before);
    assert.deepEqual(await stateOf(to, id), UNCHANGED);
  });

  it("names the sender's domain, masks the address, and escapes both", async () => {
    const { to, path } = await sendMarketing({ to: 'Ada <Some.Person@example.net>' });
    const text = await (await visit(path)).text();
    assert.ok(text.includes(`<strong>${ours.domain}</strong>`));
    assert.ok(text.includes('<strong>s***@example.net</strong>'));
    assert.doesNotMatch(text, /some\.person|ada/i);
    assert.ok(!text.includes(to));
    await ours.addDomain('bücher.example');
    const unicode = await sendMarketing({ from: 'a@bücher.example', to: '&amp@example.net' });
    const page = await (await visit(unicode.path)).text();
    assert.match(page, /<strong>bücher\.example</);
    assert.match(page, /<strong>&amp;\*\*\*@example\.net</);
  });

  it('loads nothing, runs no script, sets no cookie, and cannot be framed, cached or indexed', async () => {
    const { path } = await sendMarketing();
    for (const method of ['GET', 'POST']) {
      const answer = await visit(path, {}, method);
      const text = await answer.text();
      const style = /<style>([^]*)<\/style>/.exec(text)?.[1] ?? '';
      const hash = createHash('sha256').update(style).digest('base64');
      const expected = {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'set-cookie': null,
      };
      for (const [name, value] of Object.entries(expected)) assert.equal(answer.headers.get(name), value, name);
      assert.match(String(answer.headers.get('x-robots-tag')), /noindex/);
      assert.doesNotMatch(text, /<script|<link|<img|src=|href=|style=|\son[a-z]+=|url\(|@import|http/i);
    }
  });

  for (const [header, lang, button] of [
    [undefined, 'en', 'Unsubscribe'],
    ['de-AT,de;q=0.9,en;q=0.8', 'de', 'Abmelden'],
    ['pt-BR, es-MX;q=0.8, en;q=0.5', 'es', 'Cancelar la suscripción'],
    ['nonsense;;q=x,,', 'en', 'Unsubscribe'],
    // Too long to be parsed.
    ['de,'.repeat(1_000), 'en', 'Unsubscribe'],
  ] as const) {
    it(`is in ${lang} for Accept-Language: ${header?.slice(0, 40) ?? 'none'}`, async () => {
      const { path } = await sendMarketing();
      const headers = { accept: BROWSER, ...(header !== undefined && { 'accept-language': header }) };
      const answer = await service.call('GET', path, { headers });
      assert.equal(answer.headers['content-language'], lang);
      assert.ok(answer.text.includes(`<html lang="${lang}">`));
      assert.ok(answer.text.includes(`<button>${button}</button>`), answer.text);
    });
  }
});

describe('POST /unsubscribe/:token', () => {
  it('unsubscribes immediately, without a cookie or a redirect', async () => {
    const { id, to, path } = await sendMarketing();
    const wakes = service.wakes();
    // Other systems add query parameters to links.
    const answer = await post(`${path}?utm_source=x`);
    assert.equal(answer.status, 200);
    assert.match(answer.text, /You are unsubscribed/);
    assert.equal(answer.headers['location'], undefined);
    assert.equal(answer.headers['set-cookie'], undefined);
    assert.deepEqual(await stateOf(to, id), UNSUBSCRIBED);
    const { body } = await ours.call('GET', `/v1/suppressions/${to}`);
    const { email, origin, reason, email_id } = body as Record<string, unknown>;
    assert.deepEqual([email, origin, reason, email_id], [to, 'unsubscribe', null, id]);
    assert.ok(service.wakes() > wakes);
    assert.equal((await ours.email(id))['status'], 'sent');
  });

  for (const [what, raw, type] of [
    ['multipart form data', '--x\r\n\r\nb\r\n--x--', 'multipart/form-data; boundary=x'],
    ['invalid JSON', '{', 'application/json'],
    ['a body without a content type', ONE_CLICK, null],
    ['bytes', Buffer.from('00ff', 'hex'), 'application/octet-stream'],
  ] as const) {
    it(`accepts ${what}`, async () => {
      const { id, to, path } = await sendMarketing();
      assert.equal((await post(path, raw, type)).status, 200);
      assert.deepEqual(await stateOf(to, id), UNSUBSCRIBED);
    });
  }

  it('returns 413 for a body over 10 kB', async () => {
    const { id, to, path } = await sendMarketing();
    assertRefused(await post(path, 'x'.repeat(10_001)), 413, 'payload_too_large');
    const chunked = head(path, undefined, 'Transfer-Encoding: chunked');
    const answer = await sendBytes(service.port, `${chunked}2711\r\n${'x'.repeat(10_001)}\r\n0\r\n\r\n`);
    assertRefused(answer, 413, 'payload_too_large');
    assert.deepEqual(await stateOf(to, id), UNCHANGED);
  });

  it('unsubscribes only the recipient of the link, and only from its organization', async () => {
    const [a, b, c] = ['One@example.net', 'two@example.net', 'three@example.net'];
    const { id, path } = await sendMarketing({ to: [a, b], cc: [`X <${a.toLowerCase()}>`], bcc: [c] }, 2);
    assert.equal((await post(path)).status, 200);
    assert.deepEqual(await stateOf(c, id), UNSUBSCRIBED);
    for (const other of [a, b]) assert.deepEqual((await stateOf(other, id)).origins, []);
    const theirs = await service.organization();
    assertRefused(await theirs.call('GET', `/v1/suppressions/${c}`), 404, 'not_found');
  });

  it('has its effect once when it is repeated, also concurrently: email.unsubscribed and suppression.added', async () => {
    const { id, to, path } = await sendMarketing();
    const events = await eventsDuring(service.pool, ours.id, async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => post(path)));
      for (const { status } of [...answers, await post(path)]) assert.equal(status, 200);
    });
    assert.deepEqual(await stateOf(to, id), UNSUBSCRIBED);
    assert.deepEqual(events.map(({ type }) => type).sort(), ['email.unsubscribed', 'suppression.added']);
    const email = events.find(({ type }) => type === 'email.unsubscribed');
    assert.deepEqual([email?.message_id, email?.data['recipient']], [id, to]);
    const { data } = events.find(({ type }) => type === 'suppression.added') ?? {};
    assert.deepEqual([data?.['email'], data?.['origin'], data?.['emailId']], [to, 'unsubscribe', id]);
  });

  it('adds to a manual suppression, and works again after the organization removed the address', async () => {
    const { id, to, path } = await sendMarketing();
    await ours.call('POST', '/v1/suppressions', { json: { email: to } });
    for (const origins of [['manual', 'unsubscribe'], ['unsubscribe']]) {
      assert.equal((await post(path)).status, 200);
      assert.deepEqual((await stateOf(to, id)).origins.sort(), origins);
      assert.equal((await ours.call('DELETE', `/v1/suppressions/${to}`)).status, 204);
    }
  });

  it('works in every status of the email and does not change it, also after ten years', async () => {
    for (const status of EMAIL_STATUSES) {
      const { id, to, path } = await sendMarketing();
      await force(service.pool, id, status);
      await service.pool.query(`UPDATE emails SET created_at = now() - interval '10 years' WHERE id = $1`, [id]);
      assert.equal((await post(path)).status, 200, status);
      assert.deepEqual((await stateOf(to, id)).origins, ['unsubscribe'], status);
      assert.equal((await ours.email(id))['status'], status);
    }
  });
});

describe('an invalid unsubscribe link', () => {
  it('returns 404 for a forged token', async () => {
    const { id, to, token } = await sendMarketing();
    const other = await sendMarketing();
    const make = (fields: object) => tokens.make({ orgId: ours.id, emailId: id, position: 0, ...fields });
    const signature = (text: string) => text.split('.')[2] as string;
    for (const forged of [
      make({ orgId: (await service.organization()).id }),
      `${id}.0.${signature(other.token)}`,
      `${id}.1.${signature(token)}`,
      make({ position: 1 }),
      make({ emailId: `em_${'0'.repeat(26)}` }),
      makeUnsubscribeTokens(`${SECRET_KEY}x`).make({ orgId: ours.id, emailId: id, position: 0 }),
    ]) {
      assert.ok(parseUnsubscribeToken(forged), forged);
      assertRefused(await post(`/unsubscribe/${forged}`), 404, 'not_found');
      assertRefused(await service.call('GET', `/unsubscribe/${forged}`), 404, 'not_found');
    }
    assert.deepEqual(await stateOf(to, id), UNCHANGED);
  });

  it('returns 404 for anything else, 404 without a token and 405 for other methods', async () => {
    for (const text of ['%ZZ', 'x'.repeat(10_000)]) {
      assertRefused(await post(`/unsubscribe/${encodeURIComponent(text)}`), 404, 'not_found');
    }
    assertRefused(await service.call('GET', '/unsubscribe/'), 404, 'not_found');
    const answer = await service.call('PUT', '/unsubscribe/x');
    assertRefused(answer, 405, 'method_not_allowed');
    assert.equal(answer.headers['allow'], 'GET, POST');
  });

  it('gives a browser an error page in its language, and a program the usual error', async () => {
    for (const method of ['GET', 'POST']) {
      const answer = await visit('/unsubscribe/x', { 'accept-language': 'de' }, method);
      const text = await answer.text();
      assert.equal(answer.status, 404);
      assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
      assert.ok(answer.headers.get('content-security-policy'));
      assert.match(text, /<html lang="de">[^]*Dieser Link funktioniert nicht/);
      assert.doesNotMatch(text, /<form|<button/);
    }
    assertRefused(await service.call('GET', '/unsubscribe/x', { headers: { accept: '*/*' } }), 404, 'not_found');
  });
});

it('an internal error gives a browser a page in its language, and a program the usual error', async (t) => {
  const { path } = await sendMarketing();
  const broken = await startService();
  t.after(() => broken.close());
  await broken.pool.query('DROP TABLE emails CASCADE');
  const headers = { accept: BROWSER, 'accept-language': 'fr' };
  const answer = await fetch(broken.url + path, { method: 'POST', headers });
  assert.equal(answer.status, 500);
  assert.match(await answer.text(), /<html lang="fr">[^]*Impossible pour le moment/);
  assertRefused(await broken.call('POST', path), 500, 'internal_error');
});

it('the log contains neither tokens nor addresses', async () => {
  const { to, token, path } = await sendMarketing();
  await visit(path);
  await post(path);
  const log = service.log.join('');
  assert.ok(log.includes('/unsubscribe/:token'));
  assert.ok(!log.includes(token) && !log.includes(token.split('.')[2] as string) && !log.includes(to));
});
