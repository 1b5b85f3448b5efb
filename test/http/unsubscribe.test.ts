import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { EMAIL_STATUSES } from '../../src/domain/email/email.ts';
import { claimOf, makeUnsubscribeTokens } from '../../src/domain/email/unsubscribe-token.ts';
import { project } from '../../src/projection/emails.ts';
import { force } from '../store/mail.ts';
import { assertRefused, SECRET_KEY, startService, useService } from './service.ts';
import { head, speak } from './socket.ts';

const service = await useService();
const ours = await service.organization();

const tokens = makeUnsubscribeTokens(SECRET_KEY);
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const ONE_CLICK = 'List-Unsubscribe=One-Click';
const FORM = 'application/x-www-form-urlencoded';

/** A marketing email that was sent, its recipient and the path of his link. */
async function mailed(fields: object = {}, position = 0, org = ours) {
  const id = await org.sent({ marketing: true, ...fields });
  await project(service.pool, 'sent', [{ id }]);
  const { to } = (await org.email(id)) as { to: string[] };
  const token = tokens.make({ orgId: org.id, emailId: id, position });
  return { id, to: to[0] as string, token, path: `/unsubscribe/${token}` };
}

const post = (path: string, raw: string | Buffer = ONE_CLICK, type: string | null = FORM) =>
  service.call('POST', path, { raw, headers: type === null ? {} : { 'content-type': type } });
const visit = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(service.url + path, { method, headers: { accept: BROWSER, ...headers }, redirect: 'error' });

/** What the list says of an address, and what the timeline of an email holds besides its sending. */
async function known(address: string, emailId: string, org = ours): Promise<unknown> {
  const { body } = await org.call('GET', `/v1/suppressions?email=${encodeURIComponent(address)}`);
  const { events } = (await org.email(emailId)) as { events: { type: string }[] };
  return [
    (body as { suppressions: { origin: string; email_id: string }[] }).suppressions.map(({ origin }) => origin),
    events.map(({ type }) => type).filter((type) => !['email.queued', 'email.sent'].includes(type)),
  ];
}
const NOTHING = [[], []];
const DONE = [['unsubscribe'], ['email.unsubscribed']];

describe('GET /unsubscribe/<token>', () => {
  it('3.7: shows a page with a button and changes nothing, however often scanners come', async () => {
    const { id, to, path } = await mailed();
    const tables = async () => {
      const count = (table: string) => `(SELECT count(*) FROM ${table})`;
      const counts = ['suppressions', 'email_events', 'email_recipients', 'outbox', 'webhook_events'].map(count);
      const text = `SELECT json_build_array(${counts.join()}, max(last_event_at)) AS state FROM emails`;
      return (await service.pool.query<{ state: unknown[] }>(text)).rows[0]?.state;
    };
    const before = await tables();
    for (let i = 0; i < 100; i++) {
      const answer = await visit(path, {}, i % 2 === 0 ? 'GET' : 'HEAD');
      assert.equal(answer.status, 200);
      const text = await answer.text();
      if (i % 2 === 0) assert.match(text, /<form method="post">[^]*<button>Unsubscribe<\/button>/);
      else assert.equal(text, '');
    }
    assert.deepEqual(await tables(), before);
    assert.deepEqual(await known(to, id), NOTHING);
  });

  it("names the sender's domain, and hides the address", async () => {
    const { to, path } = await mailed({ to: 'Ada <Somebody.Else@example.net>' });
    const text = await (await visit(path)).text();
    assert.ok(text.includes(`<strong>${ours.domain}</strong>`));
    assert.ok(text.includes('<strong>s***@example.net</strong>'));
    assert.doesNotMatch(text, /somebody|ada/i);
    assert.ok(!text.includes(to));
  });

  it('shows a domain in the letters of its people', async () => {
    const org = await service.organization();
    await org.addDomain('bücher.example');
    const { path } = await mailed({ from: 'a@bücher.example', to: 'q@例え.テスト' }, 0, org);
    assert.match(await (await visit(path)).text(), /<strong>bücher\.example</);
  });

  it('escapes what it shows', async () => {
    const { path } = await mailed({ to: `&amp@example.net` });
    assert.match(await (await visit(path)).text(), /<strong>&amp;\*\*\*@example\.net</);
  });

  it('is plain: nothing is loaded, nothing runs, nothing is kept, nobody may frame or find it', async () => {
    const { path } = await mailed();
    for (const method of ['GET', 'POST']) {
      const answer = await visit(path, {}, method);
      const text = await answer.text();
      assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
      assert.match(
        String(answer.headers.get('content-security-policy')),
        /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      );
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
      assert.match(String(answer.headers.get('x-robots-tag')), /noindex/);
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
      assert.equal(answer.headers.get('set-cookie'), null);
      assert.doesNotMatch(text, /<script|<link|<img|src=|href=|style=|\son[a-z]+=|url\(|@import|http/i);
      assert.match(text, /<meta name="viewport" content="width=device-width, initial-scale=1" ?\/?>/);
      const style = /<style>([^]*)<\/style>/.exec(text)?.[1] ?? '';
      const hash = createHash('sha256').update(style).digest('base64');
      assert.ok(answer.headers.get('content-security-policy')?.includes(`'sha256-${hash}'`), 'its own style is let in');
    }
  });

  for (const [header, lang, button] of [
    [undefined, 'en', 'Unsubscribe'],
    ['en-GB,en;q=0.9', 'en', 'Unsubscribe'],
    ['de', 'de', 'Abmelden'],
    ['de-AT,de;q=0.9,en;q=0.8', 'de', 'Abmelden'],
    ['fr-CA', 'fr', 'Se désabonner'],
    ['pt-BR, es-MX;q=0.8, en;q=0.5', 'es', 'Cancelar la suscripción'],
    ['en;q=0.1, FR;q=0.9', 'fr', 'Se désabonner'],
    ['ja, zh;q=0.9', 'en', 'Unsubscribe'],
    ['*', 'en', 'Unsubscribe'],
    ['de;q=0', 'en', 'Unsubscribe'],
    ['nonsense;;q=x,,', 'en', 'Unsubscribe'],
  ] as const) {
    it(`Accept-Language: ${header ?? 'none'} → ${lang}`, async () => {
      const { path } = await mailed();
      const headers = { accept: BROWSER, ...(header !== undefined && { 'accept-language': header }) };
      const answer = await service.call('GET', path, { headers });
      assert.equal(answer.headers['content-language'], lang);
      assert.ok(answer.text.includes(`<html lang="${lang}">`));
      assert.ok(answer.text.includes(`<button>${button}</button>`), answer.text);
    });
  }

  it('is found with whatever parameters others hang on it', async () => {
    const { id, to, path } = await mailed();
    assert.equal((await visit(`${path}?utm_source=x&fbclid=1`)).status, 200);
    assert.equal((await visit(`${path}?utm_source=x`, {}, 'POST')).status, 200);
    assert.deepEqual(await known(to, id), DONE);
  });
});

describe('POST /unsubscribe/<token>', () => {
  it('3.7: unsubscribes at once, without a cookie or a redirect', async () => {
    const { id, to, path } = await mailed();
    const wakes = service.wakes();
    const answer = await post(path);
    assert.equal(answer.status, 200);
    assert.match(answer.text, /You are unsubscribed/);
    assert.equal(answer.headers['location'], undefined);
    assert.equal(answer.headers['set-cookie'], undefined);
    assert.deepEqual(await known(to, id), DONE);
    const { body } = await ours.call('GET', `/v1/suppressions/${to}`);
    const { email, origin, reason, email_id } = body as Record<string, unknown>;
    assert.deepEqual([email, origin, reason, email_id], [to, 'unsubscribe', null, id]);
    assert.ok(service.wakes() > wakes);
    assert.equal((await ours.email(id))['status'], 'sent');
  });

  for (const [what, raw, type] of [
    ["a mail program's form (RFC 8058)", ONE_CLICK, FORM],
    [
      'the same in parts',
      `--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--`,
      'multipart/form-data; boundary=x',
    ],
    ['an empty form', '', FORM],
    ['JSON', '{}', 'application/json'],
    ['what is no JSON', '{', 'application/json'],
    ['a text', 'x', 'text/plain'],
    ['a body of no type', ONE_CLICK, null],
    ['no body at all', '', null],
    ['a type that is none', ONE_CLICK, 'nonsense'],
    ['a type of nothing', ONE_CLICK, ';;'],
    ['10 kB', 'x'.repeat(10_000), FORM],
    ['bytes', Buffer.from('00ff', 'hex'), 'application/octet-stream'],
  ] as const) {
    it(`takes ${what}`, async () => {
      const { id, to, path } = await mailed();
      assert.equal((await post(path, raw, type)).status, 200);
      assert.deepEqual(await known(to, id), DONE);
    });
  }

  it('refuses a body that is too long', async () => {
    const { id, to, path } = await mailed();
    assertRefused(await post(path, 'x'.repeat(10_001)), 413, 'payload_too_large');
    const chunked = head(path, undefined, 'Transfer-Encoding: chunked');
    const answer = await speak(service.port, `${chunked}2711\r\n${'x'.repeat(10_001)}\r\n0\r\n\r\n`);
    assertRefused(answer, 413, 'payload_too_large');
    assert.deepEqual(await known(to, id), NOTHING);
  });

  it('may be repeated, also many times at once', async () => {
    const { id, to, path } = await mailed();
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(path)));
    answers.push(await post(path));
    for (const { status } of answers) assert.equal(status, 200);
    assert.deepEqual(await known(to, id), DONE);
  });

  it('unsubscribes the one whose link it is, and nobody else', async () => {
    const [a, b, c] = ['One@example.net', 'two@example.net', 'three@example.net'];
    const { id, path } = await mailed({ to: [a, b], cc: [`X <${a.toLowerCase()}>`], bcc: [c] }, 2);
    assert.equal((await post(path)).status, 200);
    assert.deepEqual(await known(c, id), DONE);
    for (const other of [a, b]) assert.deepEqual(((await known(other, id)) as unknown[])[0], []);
  });

  it('tells customers: email.unsubscribed with the recipient, suppression.added', async () => {
    const { id, to, path } = await mailed();
    await service.pool.query(
      `INSERT INTO webhook_endpoints (id, org_id, url, events, secret) VALUES ('wh_1', $1, 'https://example.com', '{}', '')`,
      [ours.id],
    );
    for (let i = 0; i < 3; i++) await post(path);
    const { rows } = await service.pool.query<{ type: string; message_id: string; data: Record<string, unknown> }>(
      'SELECT type, message_id, data FROM webhook_events ORDER BY type',
    );
    await service.pool.query('DELETE FROM webhook_endpoints');
    assert.deepEqual(
      rows.map(({ type }) => type),
      ['email.unsubscribed', 'suppression.added'],
    );
    const [email, suppression] = rows.map(({ data }) => data);
    assert.deepEqual([rows[0]?.message_id, email?.['recipient']], [id, to]);
    assert.deepEqual(
      [suppression?.['email'], suppression?.['origin'], suppression?.['emailId']],
      [to, 'unsubscribe', id],
    );
  });

  it('holds for marketing email of that organization only', async () => {
    const { to, path } = await mailed();
    await post(path);
    const theirs = await service.organization();
    const { body } = await theirs.call('GET', `/v1/suppressions?email=${to}`);
    assert.deepEqual((body as { suppressions: unknown[] }).suppressions, []);
  });

  it('adds to what is there: an address that nothing is sent to may unsubscribe too', async () => {
    const { id, to, path } = await mailed();
    await ours.call('POST', '/v1/suppressions', { json: { email: to } });
    assert.equal((await post(path)).status, 200);
    const [origins] = (await known(to, id)) as [string[]];
    assert.deepEqual(origins.sort(), ['manual', 'unsubscribe']);
  });

  it('holds again after the organization has taken the address off its list', async () => {
    const { id, to, path } = await mailed();
    await post(path);
    assert.equal((await ours.call('DELETE', `/v1/suppressions/${to}`)).status, 204);
    assert.equal((await post(path)).status, 200);
    assert.deepEqual(await known(to, id), DONE);
  });

  for (const status of EMAIL_STATUSES) {
    it(`works from an email that is ${status}`, async () => {
      const { id, to, path } = await mailed();
      await force(service.pool, id, status);
      assert.equal((await post(path)).status, 200);
      const [origins] = (await known(to, id)) as [string[]];
      assert.deepEqual(origins, ['unsubscribe']);
      assert.equal((await ours.email(id))['status'], status);
    });
  }

  it('never ends while the email is there', async () => {
    const { id, path } = await mailed();
    await service.pool.query(`UPDATE emails SET created_at = now() - interval '10 years' WHERE id = $1`, [id]);
    assert.equal((await post(path)).status, 200);
  });
});

describe('a link that leads nowhere', () => {
  it('404 for a token of which any character is another one, missing or added', async () => {
    const { id, to, token } = await mailed();
    for (let at = 0; at < token.length; at++) {
      const [before, character, after] = [token.slice(0, at), token.charAt(at), token.slice(at + 1)];
      const other = String.fromCharCode(character.charCodeAt(0) ^ 1);
      for (const wrong of [`${before}${other}${after}`, before + after, `${before}${character}${character}${after}`]) {
        const path = `/unsubscribe/${encodeURIComponent(wrong)}`;
        assertRefused(await post(path), 404, 'not_found');
        assertRefused(await service.call('GET', path), 404, 'not_found');
      }
    }
    assert.deepEqual(await known(to, id), NOTHING);
  });

  it('404 for the token of another organization, email, position or secret', async () => {
    const { id, to, token } = await mailed();
    const other = await mailed();
    const of = (fields: object) => tokens.make({ orgId: ours.id, emailId: id, position: 0, ...fields });
    const signature = (text: string) => text.split('.')[2] as string;
    for (const wrong of [
      of({ orgId: (await service.organization()).id }),
      `${id}.0.${signature(other.token)}`,
      `${id}.1.${signature(token)}`,
      of({ position: 1 }),
      of({ emailId: `em_${'0'.repeat(26)}` }),
      makeUnsubscribeTokens(`${SECRET_KEY}x`).make({ orgId: ours.id, emailId: id, position: 0 }),
    ]) {
      assert.ok(claimOf(wrong), wrong);
      assertRefused(await post(`/unsubscribe/${wrong}`), 404, 'not_found');
    }
    assert.deepEqual(await known(to, id), NOTHING);
  });

  for (const path of ['x', '%00', '%ZZ', "' OR 1=1 --", 'em_', 'x'.repeat(10_000), '../v1/emails']) {
    it(`404: ${path.slice(0, 40)}`, async () => {
      assertRefused(await post(`/unsubscribe/${encodeURIComponent(path)}`), 404, 'not_found');
    });
  }

  it('a browser gets a page that says so, in its language', async () => {
    for (const method of ['GET', 'POST']) {
      const answer = await visit('/unsubscribe/x', { 'accept-language': 'de' }, method);
      const text = await answer.text();
      assert.equal(answer.status, 404);
      assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
      assert.ok(answer.headers.get('content-security-policy'));
      assert.match(text, /<html lang="de">[^]*Dieser Link funktioniert nicht/);
      assert.doesNotMatch(text, /<form|<button/);
    }
  });

  it('a program gets the error of every other address', async () => {
    for (const accept of ['*/*', 'application/json', '', 'nonsense']) {
      assertRefused(await service.call('GET', '/unsubscribe/x', { headers: { accept } }), 404, 'not_found');
    }
  });

  it('405 for another method, 404 without a token', async () => {
    const { path } = await mailed();
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      const answer = await service.call(method, path);
      assertRefused(answer, 405, 'method_not_allowed');
      assert.equal(answer.headers['allow'], 'GET, POST');
    }
    assertRefused(await service.call('GET', '/unsubscribe'), 404, 'not_found');
    assertRefused(await service.call('GET', '/unsubscribe/'), 404, 'not_found');
  });
});

describe('what goes wrong on our side', () => {
  it('is told a browser as a page that says that nothing was done, and a program as everywhere', async (t) => {
    const { path } = await mailed();
    const broken = await startService();
    t.after(() => broken.close());
    await broken.pool.query('DROP TABLE emails CASCADE');
    const headers = { accept: BROWSER, 'accept-language': 'fr' };
    const answer = await fetch(broken.url + path, { method: 'POST', headers });
    assert.equal(answer.status, 500);
    assert.match(await answer.text(), /<html lang="fr">[^]*Impossible pour le moment/);
    assertRefused(await broken.call('POST', path), 500, 'internal_error');
  });
});

describe('the log', () => {
  it('holds neither tokens nor addresses', async () => {
    const { to, token, path } = await mailed();
    await visit(path);
    await post(path);
    const log = service.log.join('');
    assert.ok(log.includes('/unsubscribe/:token'));
    assert.ok(!log.includes(token) && !log.includes(token.split('.')[2] as string) && !log.includes(to));
  });
});
