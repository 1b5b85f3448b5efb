import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { request } from 'undici';
import { makeDownloadLinks } from '../../src/domain/file-links.ts';
import { assertRemaining } from '../support/remaining.ts';
import { assertRefused, bodyOf, inFuture, SECRET_KEY, startService, TIMESTAMP, useService } from './service.ts';

const DAY = 86_400_000;
const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Listed {
  id: string;
  filename: string;
  expires_at: string;
  download_url: string | null;
}

const service = await useService();
const org = await service.organization();

async function list(emailId: string): Promise<Listed[]> {
  const answer = await org.call('GET', `/v1/emails/${emailId}/attachments`);
  return bodyOf<{ attachments: Listed[] }>(answer, 200).attachments;
}

async function sentWith(filename = 'a.txt', content = 'hello', fields: object = {}): Promise<[string, Listed]> {
  const id = await org.sent({ ...fields, attachments: [{ filename, content: base64(content) }] });
  const [attachment] = await list(id);
  return [id, attachment as Listed];
}

/** Adds an event to a timeline, as the projection does. */
async function event(emailId: string, type: string, ago: string): Promise<void> {
  const status = type.slice('email.'.length);
  await service.pool.query(
    `INSERT INTO email_events (email_id, id, type, created_at) VALUES ($1, 'evt_' || gen_random_uuid(), $2, now() - $3::interval)`,
    [emailId, type, ago],
  );
  await service.pool.query(`UPDATE emails SET status = $2, error = 'x' WHERE id = $1`, [emailId, status]);
}

const path = (url: string | null | undefined) => String(url).slice(service.url.length);

describe('the attachments of an email', () => {
  it('are listed in order, each with its expiry time and a link', async () => {
    const emailId = await org.sent({
      attachments: [
        { filename: 'one.txt', content: base64('one') },
        { filename: 'two.png', content: base64('two'), content_id: 'two' },
      ],
    });
    const answer = await org.call('GET', `/v1/emails/${emailId}/attachments`);
    const { attachments } = answer.body as { attachments: (Listed & Record<string, unknown>)[] };
    assert.deepEqual(Object.keys(answer.body as object), ['attachments']);
    assert.deepEqual(
      attachments.map(({ id, expires_at, download_url, ...rest }) => {
        assert.match(expires_at, TIMESTAMP);
        assert.ok(download_url?.startsWith(`${service.url}/v1/emails/${emailId}/attachments/${id}/download?`));
        return rest;
      }),
      [
        { filename: 'one.txt', content_type: 'text/plain', size: 3, content_id: null, inline: false },
        { filename: 'two.png', content_type: 'image/png', size: 3, content_id: 'two', inline: true },
      ],
    );
    for (const each of attachments) {
      const single = bodyOf(await org.call('GET', `/v1/emails/${emailId}/attachments/${each.id}`), 200);
      assert.deepEqual([single['id'], Object.keys(single).sort()], [each.id, Object.keys(each).sort()]);
    }
  });

  it('returns 404 for an attachment of another email', async () => {
    const [[emailId], [, other]] = [await sentWith(), await sentWith()];
    const answer = await org.call('GET', `/v1/emails/${emailId}/attachments/${other.id}`);
    assertRefused(answer, 404, 'not_found', undefined, 'this email has no attachment with this id');
  });

  it('have links that begin with PUBLIC_URL', async (t) => {
    const { pool, files } = service;
    const behind = await startService({ pool, files, publicUrl: 'https://mail.example.com' });
    t.after(behind.close);
    const [id] = await sentWith();
    const answer = await behind.call('GET', `/v1/emails/${id}/attachments`, { key: org.key });
    assert.match(answer.text, /"download_url":"https:\/\/mail\.example\.com\/v1\/emails\//);
  });
});

describe('a link', () => {
  it('returns the file without a key, as a download that no browser runs', async () => {
    for (const [filename, plain, encoded] of [
      ['Übersicht "1".pdf', '_bersicht _1_.pdf', '%C3%9Cbersicht%20%221%22.pdf'],
      ["it's (a) *b*;c.html", "it's (a) *b*;c.html", 'it%27s%20%28a%29%20%2Ab%2A%3Bc.html'],
      ['👩‍👧 100%.png', '___ 100_.png', '%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7%20100%25.png'],
    ] as const) {
      const [, { download_url }] = await sentWith(filename, `content of ${filename}`);
      const { statusCode, headers, body } = await request(String(download_url));
      assert.equal(statusCode, 200);
      assert.equal(await body.text(), `content of ${filename}`);
      assert.equal(headers['content-disposition'], `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`);
      assert.equal(headers['content-length'], String(Buffer.byteLength(`content of ${filename}`)));
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['content-security-policy'], "default-src 'none'; sandbox");
      assert.equal(headers['referrer-policy'], 'no-referrer');
      assert.equal(headers['cache-control'], 'private, no-store');
      assert.match(String(headers['x-request-id']), /^req_/);
      if (filename.endsWith('.html')) assert.equal(headers['content-type'], 'text/html');
    }
  });

  it('is valid for one hour by the database’s clock; the list returns a fresh one', async () => {
    const [emailId, { id, download_url }] = await sentWith();
    const { rows } = await service.pool.query<{ now: number }>(
      'SELECT floor(extract(epoch FROM now()))::float8 AS now',
    );
    const now = rows[0]?.now ?? 0;
    const expires = Number(new URL(String(download_url)).searchParams.get('expires'));
    assertRemaining((expires - now) * 1_000, 3_600_000);
    const links = makeDownloadLinks(SECRET_KEY);
    assert.equal((await service.call('GET', links.make([emailId, id], now + 5))).status, 200);
    assertRefused(await service.call('GET', links.make([emailId, id], now - 1)), 404, 'not_found');
    const [fresh] = await list(emailId);
    assert.equal((await service.call('GET', path(fresh?.download_url))).status, 200);
  });

  it('is invalid if any character is changed', async () => {
    const [, { download_url }] = await sentWith();
    const link = path(download_url);
    for (let at = link.indexOf('em_') + 3; at < link.length; at++) {
      const changed = link.slice(0, at) + (link[at] === '2' ? '3' : '2') + link.slice(at + 1);
      const { status } = await service.call('GET', changed);
      assert.ok([401, 404, 422].includes(status), `${changed}: ${status}`);
    }
  });

  it('is invalid for another file, another expiry time or another secret key', async () => {
    const [emailId, one] = await sentWith('one.txt');
    const [otherId, other] = await sentWith('other.txt');
    const signed = path(one.download_url);
    const { searchParams } = new URL(String(one.download_url));
    const [expires, signature] = [Number(searchParams.get('expires')), searchParams.get('signature') ?? ''];
    for (const target of [
      signed.replace(one.id, other.id),
      signed.replace(emailId, otherId).replace(one.id, other.id),
      signed.replace(`expires=${expires}`, `expires=${expires + 1}`),
      signed.replace(`expires=${expires}`, `expires=0${expires}`),
      signed.replace(signature, signature.slice(0, -1)),
      makeDownloadLinks(`${SECRET_KEY}!`).make([emailId, one.id], expires),
    ]) {
      const answer = await service.call('GET', target);
      assertRefused(answer, 404, 'not_found', undefined, 'this link has expired or is not valid');
    }
    const bare = signed.slice(0, signed.indexOf('?'));
    assertRefused(await service.call('GET', bare), 422, 'validation_error', 'expires', 'is required');
  });
});

describe('expires_at', () => {
  const days = ({ expires_at } = {} as Listed) => (Date.parse(expires_at) - Date.now()) / DAY;
  const assertDays = (actual: Listed | undefined, expected: number) => {
    assert.ok(Math.abs(days(actual) - expected) < 0.01, `${days(actual)} days`);
  };

  it('is 30 days after the email is due', async () => {
    assertDays((await sentWith())[1], 30);
    const [id, attachment] = await sentWith('a.txt', 'x', { scheduled_at: inFuture({ days: 10 }) });
    assertDays(attachment, 40);
    await org.call('PATCH', `/v1/emails/${id}`, { json: { scheduled_at: inFuture({ days: 2 }) } });
    assertDays((await list(id))[0], 32);
    await org.call('POST', `/v1/emails/${id}/cancel`);
    assertDays((await list(id))[0], 30);
  });

  for (const [what, events, expected] of [
    ['the send, also after later reports', { 'email.sent': '3 days', 'email.delivered': '1 day' }, 27],
    ['email.failed', { 'email.failed': '4 days' }, 26],
    ['email.rejected', { 'email.rejected': '4 days' }, 26],
    ['email.suppressed', { 'email.suppressed': '4 days' }, 26],
  ] as const) {
    it(`is 30 days after ${what}`, async () => {
      const [id] = await sentWith('a.txt', 'x', { scheduled_at: inFuture({ days: 1 }) });
      for (const [type, ago] of Object.entries(events)) await event(id, type, ago);
      assertDays((await list(id))[0], expected);
    });
  }

  it('ends the links, and the metadata stays', async () => {
    const [id, { download_url }] = await sentWith();
    await event(id, 'email.sent', '720 hours');
    const [attachment] = await list(id);
    assert.deepEqual([attachment?.download_url, attachment?.filename], [null, 'a.txt']);
    assertRefused(await service.call('GET', path(download_url)), 404, 'not_found');
    assert.equal(((await org.email(id))['attachments'] as unknown[]).length, 1);
  });

  it('has not passed, but the file is missing: the link returns 404', async () => {
    const [, { id, download_url }] = await sentWith();
    await service.files.remove([id]);
    assertRefused(await service.call('GET', path(download_url)), 404, 'not_found');
  });
});
