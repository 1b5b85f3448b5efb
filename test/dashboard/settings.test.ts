import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CHAPTERS } from '../../src/dashboard/footer.tsx';
import { changeBodyRetention } from '../../src/accounts/organizations.ts';
import { insertAudit, listAudit } from '../../src/store/accounts/audit.ts';
import { setQuota } from '../../src/store/limits/quota.ts';
import { useService } from '../http/service.ts';
import { signedIn, textOf, visitor } from './visitor.ts';

const service = await useService();
const ours = await service.organization('Northwind');
const owner = await signedIn(service, ours.id);
const viewer = await signedIn(service, ours.id, 'viewer');

describe('the settings of an organization', () => {
  const PATH = '/dashboard/settings';

  it('show its id, quota and retention', async () => {
    const text = async () => textOf((await viewer.get(PATH)).html);
    assert.match(await text(), /Monthly quota No limit .*Email content kept for Unlimited time/);
    assert.match(await text(), /Email records kept for 365 days .*API request log kept for 7 days/);
    assert.ok((await text()).includes(ours.id));
    await setQuota(service.pool, ours.id, 12_000);
    await changeBodyRetention(service.pool, ours.id, 30);
    assert.match(await text(), /Monthly quota 12,000 emails .*Email content kept for 30 days/);
  });

  it('have a name that owners change', async () => {
    const shown = await owner.change(PATH, { name: ' Northwind <Books> ' });
    assert.ok(
      shown.html.includes('Northwind &lt;Books>') || shown.html.includes('Northwind &lt;Books&gt;'),
      shown.html,
    );
    const [entry] = await listAudit(service.pool, ours.id, null, 1);
    assert.deepEqual([entry?.action, entry?.target], ['organizations.update', ours.id]);
    for (const name of [' ', 'a\u0007b', 'x'.repeat(201)]) {
      const refused = await owner.post(PATH, { name });
      assert.equal(refused.status, 422, name);
      assert.match(refused.html, /id="field-name-problem"/);
    }
    assert.ok(!(await viewer.get(PATH)).html.includes('<form method="post" action="/dashboard/settings"'));
  });

  it('have no name with a URL, a domain or an address, which strangers would get in invitations', async () => {
    for (const name of [
      ...['Verify at https://evil.example/x', 'evil.example', 'Pay (www.evil.example) now', 'hxxps://evil', 'me@evil'],
      ...['evil\u3002example', 'evil\uff0eexample', 'evil.\u200bexample', 'a\u2024b', 'x'.repeat(61)],
    ]) {
      const refused = await owner.post(PATH, { name });
      assert.equal(refused.status, 422, name);
      assert.match(refused.html, /id="field-name-problem"/, name);
    }
    for (const name of ['St. Mary & Sons, Inc.', 'Node/JS: the 2nd', '株式会社ノース。', 'x'.repeat(60)]) {
      assert.equal((await owner.post(PATH, { name })).status, 303, name);
    }
    await owner.change(PATH, { name: 'Northwind' });
  });
});

describe('the time zone', () => {
  const PATH = '/dashboard/account/time-zone';

  it('of a user is stored by its name and stated on every page', async () => {
    const page = await viewer.get('/dashboard/emails');
    assert.match(page.html, /<html lang="en">/);
    assert.match(textOf(page.html), /Times are in UTC ?\./);
    const changed = await viewer.change(PATH, { time_zone: 'europe/berlin' });
    assert.match(changed.html, /<html lang="en" data-time-zone="Europe\/Berlin">/);
    assert.match(textOf((await viewer.get('/dashboard/account')).html), /Time zone Europe\/Berlin/);
    assert.match((await owner.get(PATH)).html, /<html lang="en">/, 'another user keeps theirs');
    const refused = await viewer.post(PATH, { time_zone: 'Berlin' });
    assert.equal(refused.status, 422);
    assert.match(refused.html, /id="field-time_zone-problem"[^>]*>is not a time zone/);
    const reset = await viewer.change(PATH, { time_zone: '' });
    assert.match(reset.html, /<html lang="en">/);
  });

  it('is the one in which the expiry of a key is entered', async () => {
    await owner.change(PATH, { time_zone: 'Asia/Tokyo' });
    assert.match(textOf((await owner.get('/dashboard/keys/new')).html), /Expires \(Asia\/Tokyo\)/);
    await owner.post('/dashboard/keys/new', { preset: 'read_only', expires_at: '2099-01-01T09:00' });
    const { body } = await ours.call('GET', '/v1/keys?limit=1');
    const [key] = (body as { keys: { expires_at: string }[] }).keys;
    assert.equal(key?.expires_at, '2099-01-01T00:00:00.000Z');
  });
});

describe('the audit log', () => {
  it('is downloaded as CSV, all of it, and the download is in it', async () => {
    const other = await service.organization('Other');
    const reader = await signedIn(service, other.id, 'viewer');
    const change = { org_id: other.id, actor_kind: 'system', actor_id: 'upkeep', action: 'x.y' } as const;
    for (let n = 0; n < 1_005; n++) {
      await insertAudit(service.pool, { ...change, target: n === 0 ? '=1+1' : `t${n}`, detail: { n } });
    }
    const { headers, html } = await reader.get('/dashboard/audit/download');
    assert.match(String(headers['content-type']), /^text\/csv/);
    assert.match(String(headers['content-disposition']), /filename="audit-log-\d{4}-\d\d-\d\d\.csv"/);
    const [heading, latest = '', ...rest] = html.trim().split('\r\n');
    assert.equal(heading, 'at,actor_kind,actor_id,actor_email,action,target,detail,id');
    assert.match(latest, new RegExp(`,user,${reader.id},${reader.email},audit\\.export,,\\{\\},`));
    assert.equal(rest.length, 1_005);
    assert.equal(new Set(rest.map((line) => line.split(',').at(-1))).size, 1_005, 'each once');
    assert.match(rest.at(-1) ?? '', /x\.y,'=1\+1,"\{""n"":0\}"/, 'no formula for spreadsheets');
    assert.ok(!html.includes(ours.id));
    assert.ok((await reader.get('/dashboard/audit')).html.includes('/dashboard/audit/download'));
  });
});

describe('every page', () => {
  it('is compressed for browsers that accept it, but not the answer to a form', async () => {
    const { headers } = await owner.get('/dashboard/emails', { 'accept-encoding': 'gzip, br' });
    assert.equal(headers['content-encoding'], 'gzip');
    assert.equal(headers['vary'], 'accept-encoding');
    const plain = await owner.get('/dashboard/emails');
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.ok(plain.html.includes('</html>'));
    const fields = { preset: 'full_access' };
    const made = await owner.post('/dashboard/keys/new', fields, { 'accept-encoding': 'gzip' });
    assert.equal(made.headers['content-encoding'], undefined);
  });

  it('links to the part of the documentation that explains it', async () => {
    const linkOn = async (path: string) =>
      /<a href="(\/docs[^"]*)">Documentation<\/a>/.exec((await owner.get(path)).html)?.[1] ?? '';
    assert.equal(await linkOn('/dashboard'), '/docs');
    assert.equal(await linkOn('/dashboard/keys/new'), '/docs/authentication');
    for (const [start, chapter] of Object.entries(CHAPTERS)) {
      const link = await linkOn(`/dashboard${start}`);
      assert.equal(link, `/docs/${chapter}`, start);
      const [path = '', anchor] = link.split('#');
      const { status, html } = await visitor(service).get(path);
      assert.equal(status, 200, link);
      if (anchor !== undefined) assert.ok(html.includes(` id="${anchor}"`), link);
    }
  });

  it('has an icon, also where browsers look for it by themselves', async () => {
    const { status, location = '' } = await visitor(service).get('/favicon.ico');
    assert.equal(status, 303);
    const icon = await visitor(service).get(location);
    assert.equal(icon.headers['content-type'], 'image/svg+xml');
  });
});

describe('the pages of a list', () => {
  it('lead to older ones and back to newer ones', async () => {
    const many = await service.organization('Many');
    const reader = await signedIn(service, many.id, 'viewer');
    const change = { org_id: many.id, actor_kind: 'system', actor_id: 'upkeep', action: 'x.y', detail: {} } as const;
    for (let n = 0; n < 170; n++) await insertAudit(service.pool, { ...change, target: `t${n}` });
    const linkOf = (html: string, rel: string) =>
      new RegExp(`<a href="([^"]+)" rel="${rel}">`).exec(html)?.[1]?.replaceAll('&amp;', '&');
    const first = '/dashboard/audit';
    const opened = [first];
    let page = await reader.get(first);
    assert.equal(linkOf(page.html, 'prev'), undefined);
    for (let next = linkOf(page.html, 'next'); next !== undefined; next = linkOf(page.html, 'next')) {
      opened.push(next);
      page = await reader.get(next);
    }
    assert.equal(opened.length, 4);
    const rowsOf = (html: string) => [...html.matchAll(/<code>(t\d+)<\/code>/g)].map(([, name]) => name);
    for (const path of opened.toReversed().slice(1)) {
      page = await reader.get(linkOf(page.html, 'prev') ?? '');
      assert.deepEqual(rowsOf(page.html), rowsOf((await reader.get(path)).html), path);
    }
    assert.equal(linkOf(page.html, 'prev'), undefined, 'the first page is the newest');
  });
});
