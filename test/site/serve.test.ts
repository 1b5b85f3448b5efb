import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { assertRefused, useService } from '../http/service.ts';

const PUBLIC_URL = 'https://mail.example.com';
const service = await useService({ publicUrl: PUBLIC_URL, docsSenderDomain: 'demo.example' });

describe('/docs', () => {
  it('needs no key and loads everything from the service', async () => {
    for (const page of ['/docs', '/docs/sending', '/docs/api', '/docs/api/emails']) {
      const { status, text, headers } = await service.call('GET', page);
      assert.equal(status, 200, page);
      assert.match(String(headers['content-type']), /^text\/html/);
      const loaded = [...text.matchAll(/<(?:link|script|img)[^>]* (?:src|href)="([^"]+)"/g)].map((match) => match[1]);
      assert.ok(loaded.length >= 4, page);
      for (const path of loaded) {
        assert.match(String(path), /^\/docs\//);
        assert.equal((await service.call('GET', String(path))).status, 200, path);
      }
    }
  });

  it('has a policy that forbids other sources, inline scripts, inline styles and frames', async () => {
    for (const path of ['/docs', '/docs/api/emails', '/docs/search?q=x', '/docs/none', '/llms.txt']) {
      const { headers } = await service.call('GET', path);
      const policy = String(headers['content-security-policy']);
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';/);
      assert.match(policy, /frame-ancestors 'none';/);
      assert.doesNotMatch(policy, /unsafe|https?:|data:|\*/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
    }
  });

  it('does not parse an Accept header that no browser sends, because that is slow', async () => {
    const accept = `text/html${',a/b'.repeat(3_000)}`;
    const { statusCode, headers } = await request(`${service.url}/docs/none`, { headers: { accept } });
    assert.equal(statusCode, 404);
    assert.match(String(headers['content-type']), /^application\/json/);
  });

  it('returns 404 for any other path, and a page to browsers', async () => {
    const others = [
      '/docs/none',
      '/docs/',
      '/docs/json',
      '/docs/assets/none',
      '/docs/..%2f..%2fpackage.json',
      '/docs/%00',
    ];
    for (const path of others) {
      assertRefused(await service.call('GET', path), 404, 'not_found');
    }
    assertRefused(await service.call('POST', '/docs'), 404, 'not_found');
    const headers = { accept: 'text/html,*/*;q=0.8' };
    const { statusCode, body } = await request(`${service.url}/docs/none`, { headers });
    assert.equal(statusCode, 404);
    assert.match(await body.text(), /<h1>Page not found<\/h1>/);
  });

  it('serves documents as Markdown, and their pictures', async () => {
    const { text, headers } = await service.call('GET', '/docs/sending.md');
    assert.match(String(headers['content-type']), /^text\/markdown/);
    assert.match(text, /^# Sending\n/);
    const picture = await service.call('GET', '/docs/screenshots/overview.png');
    assert.equal(picture.headers['content-type'], 'image/png');
    assert.match((await service.call('GET', '/llms.txt')).text, /^- \[Sending\]\(\/docs\/sending\.md\): /m);
  });

  it('compresses pages, and answers a known version with 304', async () => {
    const plain = await service.call('GET', '/docs/sending');
    assert.equal(plain.headers['content-encoding'], undefined);
    const zipped = await request(`${service.url}/docs/sending`, { headers: { 'accept-encoding': 'gzip' } });
    assert.equal(zipped.headers['content-encoding'], 'gzip');
    assert.equal(gunzipSync(await zipped.body.arrayBuffer()).toString(), plain.text);
    const unread = await service.call('GET', '/docs/sending', {
      headers: { 'accept-encoding': 'gzip,'.repeat(1_000) },
    });
    assert.equal(unread.headers['content-encoding'], undefined, 'a header that is too long to be parsed');
    const again = await service.call('GET', '/docs/sending', {
      headers: { 'if-none-match': String(plain.headers['etag']) },
    });
    assert.deepEqual([again.status, again.text], [304, '']);
    const [, style = ''] = /href="(\/docs\/assets\/[^"]+\.css)"/.exec(plain.text) ?? [];
    assert.match(String((await service.call('GET', style)).headers['cache-control']), /immutable/);
  });

  it('names the address of the service, its sender domain and times of today in examples', async () => {
    const dateTomorrow = () => new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const before = dateTomorrow();
    const { text } = await service.call('GET', '/docs/api/emails');
    const dates = [before, dateTomorrow()];
    const shown = text.replaceAll(/<[^>]+>/g, '').replaceAll('&quot;', '"');
    assert.ok(shown.includes(`curl -X PATCH "${PUBLIC_URL}/v1/emails/em_`));
    assert.ok(text.includes('hello@demo.example'));
    assert.ok(dates.some((date) => text.includes(`${date}T`)));
    assert.doesNotMatch(text, /hello@example\.com|2026-03-0/);
    const index = (await service.call('GET', '/llms.txt')).text;
    const pages = [...index.matchAll(/\((\/docs\/[\w/-]+\.md)\)/g)].map(([, path]) => String(path));
    assert.ok(pages.length > 10);
    for (const path of ['/docs/api/emails', ...pages, ...pages.map((page) => page.replace('.md', ''))]) {
      assert.ok(!(await service.call('GET', path)).text.includes('http://127.0.0.1:3000'), path);
    }
  });

  it('searches without JavaScript, and shows the query as text', async () => {
    const { text } = await service.call('GET', '/docs/search?q=suppression+list');
    assert.match(text, /<a href="\/docs\/statuses#suppression-list">/);
    const nothing = await service.call('GET', `/docs/search?q=${encodeURIComponent('<zzqq>xyzzy$&"')}`);
    assert.match(nothing.text, /Nothing matches “&lt;zzqq(?:>|&gt;)xyzzy\$&amp;(?:"|&#34;|&quot;)”/);
    assert.equal((await service.call('GET', '/docs/search')).status, 200);
    assert.equal((await service.call('GET', '/docs/search?q=a&q=b')).status, 200);
  });
});
