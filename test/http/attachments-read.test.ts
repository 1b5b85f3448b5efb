import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { request } from 'undici';
import { makeDownloadLinks } from '../../src/domain/email/download-links.ts';
import { allIds } from '../store/files/store-contract.ts';
import {
  assertRefused,
  inFuture,
  type Organization,
  SECRET_KEY,
  type Service,
  startService,
  TIMESTAMP,
} from './service.ts';

const DAY = 86_400_000;
const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Listed {
  id: string;
  filename: string;
  expires_at: string;
  download_url: string | null;
}

let service: Service;
let org: Organization;
before(async () => {
  service = await startService();
  org = await service.organization();
});
after(() => service.close());

async function list(emailId: string): Promise<Listed[]> {
  const answer = await org.call('GET', `/v1/emails/${emailId}/attachments`);
  assert.equal(answer.status, 200, answer.text);
  return (answer.body as { attachments: Listed[] }).attachments;
}

async function sentWith(
  filename: string,
  content = 'hello',
  fields: Record<string, unknown> = {},
): Promise<[string, Listed]> {
  const id = await org.sent({ ...fields, attachments: [{ filename, content: base64(content) }] });
  const [attachment] = await list(id);
  return [id, attachment as Listed];
}

/** Adds an event to a timeline, as the projection does. */
async function event(emailId: string, type: string, ago: string, status = type.slice('email.'.length)): Promise<void> {
  await service.pool.query(
    `INSERT INTO email_events (email_id, id, type, created_at) VALUES ($1, 'evt_' || gen_random_uuid(), $2, now() - $3::interval)`,
    [emailId, type, ago],
  );
  await service.pool.query(`UPDATE emails SET status = $2, error = 'x' WHERE id = $1`, [emailId, status]);
}

const path = (url: string | null | undefined) => String(url).slice(service.url.length);

describe('the attachments of an email', () => {
  it('are listed in their order, each with its time and a link', async () => {
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
      const single = await org.call('GET', `/v1/emails/${emailId}/attachments/${each.id}`);
      assert.equal(single.status, 200, single.text);
      assert.deepEqual(Object.keys(single.body as object).sort(), Object.keys(each).sort());
      assert.equal((single.body as Listed).id, each.id);
    }
  });

  it('of an email without any are none', async () => {
    assert.deepEqual(await list(await org.sent()), []);
  });

  it('are another organization’s business only by its own emails', async () => {
    const [emailId, { id }] = await sentWith('a.txt');
    const stranger = await service.organization();
    const [, foreign] = await sentWith('b.txt');
    for (const [path, who] of [
      [`/v1/emails/${emailId}/attachments`, stranger],
      [`/v1/emails/${emailId}/attachments/${id}`, stranger],
      [`/v1/emails/em_unknown/attachments`, org],
      [`/v1/emails/em_unknown/attachments/${id}`, org],
    ] as const) {
      assertRefused(await who.call('GET', path), 404, 'not_found', undefined, 'there is no email with this id');
    }
    for (const other of ['att_unknown', foreign.id]) {
      const answer = await org.call('GET', `/v1/emails/${emailId}/attachments/${other}`);
      assertRefused(answer, 404, 'not_found', undefined, 'this email has no attachment with this id');
    }
  });

  it('are read with a key that may read', async () => {
    const [emailId] = await sentWith('a.txt');
    const key = await org.addKey('sending_access');
    const answer = await service.call('GET', `/v1/emails/${emailId}/attachments`, { key });
    assertRefused(answer, 403, 'insufficient_scope');
    assertRefused(await service.call('GET', `/v1/emails/${emailId}/attachments`), 401, 'unauthorized');
  });

  it('have links that begin with PUBLIC_URL where it is set', async (t) => {
    const elsewhere = await startService({ publicUrl: 'https://mail.example.com' });
    t.after(elsewhere.close);
    const other = await elsewhere.organization();
    const id = await other.sent({ attachments: [{ filename: 'a.txt', content: '' }] });
    const answer = await other.call('GET', `/v1/emails/${id}/attachments`);
    assert.match(answer.text, /"download_url":"https:\/\/mail\.example\.com\/v1\/emails\//);
  });
});

describe('a link', () => {
  it('gives the file as it was, without a key, as a download and nothing else', async () => {
    for (const [filename, plain, encoded] of [
      ['a.txt', 'a.txt', 'a.txt'],
      ['Übersicht "1".pdf', '_bersicht _1_.pdf', '%C3%9Cbersicht%20%221%22.pdf'],
      ["it's (a) *b*;c.txt", "it's (a) *b*;c.txt", 'it%27s%20%28a%29%20%2Ab%2A%3Bc.txt'],
      ['👩‍👧 100%.png', '___ 100_.png', '%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7%20100%25.png'],
    ] as const) {
      const [, { download_url }] = await sentWith(filename, `content of ${filename}`);
      const answer = await request(String(download_url));
      assert.equal(answer.statusCode, 200);
      assert.equal(await answer.body.text(), `content of ${filename}`);
      const { headers } = answer;
      assert.equal(headers['content-disposition'], `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`);
      assert.equal(headers['content-length'], String(Buffer.byteLength(`content of ${filename}`)));
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['content-security-policy'], "default-src 'none'; sandbox");
      assert.equal(headers['referrer-policy'], 'no-referrer');
      assert.equal(headers['cache-control'], 'private, no-store');
      assert.match(String(headers['x-request-id']), /^req_/);
    }
  });

  it('gives a file of its type, also one that a browser would run', async () => {
    const [, { download_url }] = await sentWith('page.html', '<script>alert(1)</script>');
    const answer = await request(String(download_url));
    await answer.body.dump();
    assert.equal(answer.headers['content-type'], 'text/html');
    assert.match(String(answer.headers['content-disposition']), /^attachment; /);
  });

  it('gives nothing but the head when that is asked for', async () => {
    const [, { download_url }] = await sentWith('a.txt', 'hello');
    const answer = await request(String(download_url), { method: 'HEAD' });
    assert.equal(answer.statusCode, 200);
    assert.equal(answer.headers['content-length'], '5');
    assert.equal(await answer.body.text(), '');
  });

  it('is good for an hour by the database’s clock, and not a second longer', async () => {
    const [emailId, { id, download_url }] = await sentWith('a.txt');
    const { rows } = await service.pool.query<{ now: number }>(
      'SELECT floor(extract(epoch FROM now()))::float8 AS now',
    );
    const now = rows[0]?.now ?? 0;
    const expires = Number(new URL(String(download_url)).searchParams.get('expires'));
    assert.ok(expires > now + 3_590 && expires <= now + 3_600, `${expires - now} s`);
    const links = makeDownloadLinks(SECRET_KEY);
    assert.equal((await service.call('GET', links.make(emailId, id, now + 5))).status, 200);
    assertRefused(await service.call('GET', links.make(emailId, id, now - 1)), 404, 'not_found');
  });

  it('is worth nothing with any letter of it changed', async () => {
    const [, { download_url }] = await sentWith('a.txt');
    const link = path(download_url);
    for (let at = link.indexOf('em_') + 3; at < link.length; at++) {
      const changed = link.slice(0, at) + (link[at] === '2' ? '3' : '2') + link.slice(at + 1);
      const { status } = await service.call('GET', changed);
      assert.ok([401, 404, 422].includes(status), `${changed}: ${status}`);
    }
  });

  it('is worth nothing for another file, longer than it says, or signed with another key', async () => {
    const [emailId, one] = await sentWith('one.txt');
    const [otherId, other] = await sentWith('other.txt');
    const signed = path(one.download_url);
    const { searchParams } = new URL(String(one.download_url));
    const [expires, signature] = [Number(searchParams.get('expires')), searchParams.get('signature') ?? ''];
    for (const target of [
      signed.replace(one.id, other.id),
      signed.replace(emailId, otherId),
      signed.replace(emailId, otherId).replace(one.id, other.id),
      signed.replace(`expires=${expires}`, `expires=${expires + 1}`),
      signed.replace(`expires=${expires}`, `expires=0${expires}`),
      signed.replace(signature, ''),
      signed.replace(signature, `${signature}=`),
      signed.replace(signature, signature.slice(0, -1)),
      makeDownloadLinks(`${SECRET_KEY}!`).make(emailId, one.id, expires),
    ]) {
      assertRefused(
        await service.call('GET', target),
        404,
        'not_found',
        undefined,
        'this link has ended or leads to no file',
      );
    }
    const bare = signed.slice(0, signed.indexOf('?'));
    assertRefused(await service.call('GET', bare), 422, 'validation_error', 'expires', 'is required');
    assertRefused(await service.call('GET', `${signed}&x=1`), 422, 'validation_error', 'x', 'is not a known parameter');
  });

  it('holds up to a caller who goes away in the middle', async () => {
    const [, { download_url }] = await sentWith('a.txt', 'x'.repeat(5_000_000));
    for (let i = 0; i < 5; i++) {
      const answer = await request(String(download_url));
      answer.body.on('error', () => undefined).destroy();
    }
    assert.equal((await request(String(download_url)).then(({ body }) => body.text())).length, 5_000_000);
  });
});

describe('a file expires', () => {
  /** Days from now until it does. */
  const days = ({ expires_at }: Listed | undefined = {} as Listed) => (Date.parse(expires_at) - Date.now()) / DAY;
  const near = (actual: number, expected: number) => assert.ok(Math.abs(actual - expected) < 0.01, `${actual} days`);

  it('30 days after the email is due, before it is sent', async () => {
    near(days((await sentWith('a.txt'))[1]), 30);
    const [id, attachment] = await sentWith('a.txt', 'x', { scheduled_at: inFuture({ days: 10 }) });
    near(days(attachment), 40);
    await org.call('PATCH', `/v1/emails/${id}`, { json: { scheduled_at: inFuture({ days: 2 }) } });
    near(days((await list(id))[0]), 32);
  });

  it('30 days after it was sent, whatever was reported since', async () => {
    const [id] = await sentWith('a.txt', 'x', { scheduled_at: inFuture({ days: 1 }) });
    await event(id, 'email.sent', '3 days');
    await event(id, 'email.delivered', '1 day');
    near(days((await list(id))[0]), 27);
  });

  it('30 days after it was canceled, failed, rejected or suppressed', async () => {
    for (const type of ['email.failed', 'email.rejected', 'email.suppressed']) {
      const [id] = await sentWith('a.txt');
      await event(id, type, '4 days');
      near(days((await list(id))[0]), 26);
    }
    const [id] = await sentWith('a.txt', 'x', { scheduled_at: inFuture({ days: 10 }) });
    await org.call('POST', `/v1/emails/${id}/cancel`);
    near(days((await list(id))[0]), 30);
  });

  it('and has no link from then on, and what link there was is worth nothing', async () => {
    const [id, { download_url }] = await sentWith('a.txt');
    await event(id, 'email.sent', '720 hours');
    const [attachment] = await list(id);
    assert.equal(attachment?.download_url, null);
    assert.equal(attachment.filename, 'a.txt');
    assertRefused(await service.call('GET', path(download_url)), 404, 'not_found');
    const email = (await org.email(id)) as { attachments: unknown[] };
    assert.equal(email.attachments.length, 1);
  });

  it('a file that is gone from the store is not found', async () => {
    const [, { id, download_url }] = await sentWith('a.txt');
    assert.ok((await allIds(service.files)).includes(id));
    await service.files.remove([id]);
    assertRefused(await service.call('GET', path(download_url)), 404, 'not_found');
  });
});
