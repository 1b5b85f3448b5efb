import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { listAudit } from '../../src/store/accounts/audit.ts';
import { setQuota } from '../../src/store/limits/quota.ts';
import { type Answer, useService } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';
import { type Fields, latestAudit, type Page, signedIn, textOf } from './visitor.ts';

const PATH = '/dashboard/keys';

const service = await useService();
const ours = await service.organization('Ours');
const owner = await signedIn(service, ours.id);

const make = (fields: Fields, by = owner) => by.post(`${PATH}/new`, { preset: 'full_access', ...fields });

function keyOf({ status, html }: Page): { key: string; id: string } {
  assert.equal(status, 200, textOf(html));
  const [key = '', rest = ''] = /sw_live_([0-9a-z]{26})_[0-9a-f]{64}/.exec(html) ?? [];
  assert.notEqual(key, '', textOf(html));
  return { key, id: `key_${rest}` };
}

/** Sends the request of the page's command, as a shell parses it. */
async function tryCommand({ html }: Page): Promise<Answer> {
  const [, command = ''] = /<pre[^>]*><code>([\s\S]*?)<\/code>/.exec(html) ?? [];
  const plain = command
    .replace(/&#34;|&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&lt;/g, '<')
    .replace(/&amp;/g, '&');
  assert.match(plain, /^curl /);
  const words = execFileSync('sh', ['-c', plain.replace(/^curl /, `printf '%s\\n' `)])
    .toString()
    .trim()
    .split('\n');
  const [url = '', ...options] = words;
  const json = options[options.indexOf('-d') + 1];
  const [, key] = /^Authorization: Bearer (.+)$/.exec(options[options.indexOf('-H') + 1] ?? '') ?? [];
  const isPost = options.includes('-d');
  return service.call(isPost ? 'POST' : 'GET', url.slice(service.url.length), {
    key,
    ...(isPost && { json: JSON.parse(json ?? '') as unknown }),
  });
}

describe('a new key', () => {
  it('is shown also when its audit entry cannot be stored, which is logged', async () => {
    await service.pool.query('ALTER TABLE audit_log RENAME TO hidden_log');
    try {
      keyOf(await make({ name: 'Unaudited' }));
    } finally {
      await service.pool.query('ALTER TABLE hidden_log RENAME TO audit_log');
    }
    assert.equal(service.log.filter((line) => line.includes('a change is missing in the audit log')).length, 1);
  });

  it('is shown once, beside a request that works as pasted', async () => {
    const made = await make({ preset: 'sending_access', name: 'Shop <1>' });
    const { key, id } = keyOf(made);
    const sent = await tryCommand(made);
    assert.equal(sent.status, 202, sent.text);
    const email = await ours.email((sent.body as { id: string }).id);
    assert.deepEqual(email['to'], [owner.email]);
    for (const path of [PATH, '/dashboard/audit']) {
      const { html } = await owner.get(path);
      assert.ok(html.includes(id) && !html.includes(key.slice(-64)), `${path} does not show the key`);
      assert.ok(!html.includes('<1>'), 'a name is escaped');
    }
    const [entry] = await listAudit(service.pool, ours.id, null, 1);
    assert.deepEqual([entry?.action, entry?.target, entry?.actor_id], ['keys.create', id, owner.id]);
  });

  it('with read_only is shown with a request that lists emails', async () => {
    const made = await make({ preset: 'read_only' });
    assert.equal((await tryCommand(made)).status, 200);
    const { key } = keyOf(made);
    assert.equal((await service.call('POST', '/v1/emails', { key, json: ours.mail() })).status, 403);
  });

  it('has the limits that were chosen', async () => {
    const [first, second] = [await ours.addDomain('first.example.com'), await ours.addDomain('second.example.com')];
    const form = await owner.get(`${PATH}/new`);
    for (const id of [first, second]) assert.ok(form.html.includes(`value="${id}"`), 'every domain has a box');
    const made = await make({
      name: 'Limited',
      domain_ids: [first],
      expires_at: '2099-01-02T03:04',
      allowed_ips: '127.0.0.1\n2001:db8::/32',
    });
    const { id } = keyOf(made);
    const { body } = await ours.call('GET', `/v1/keys/${id}`);
    const { domain_ids, expires_at, allowed_ips } = body as Record<string, unknown>;
    assert.deepEqual([domain_ids, expires_at], [[first], '2099-01-02T03:04:00.000Z']);
    assert.deepEqual(allowed_ips, ['127.0.0.1', '2001:db8::/32']);
    const sent = await tryCommand(made);
    assert.equal(sent.status, 202, sent.text);
    assert.equal((await ours.email((sent.body as { id: string }).id))['from'], 'hello@first.example.com');
    assert.match(
      textOf((await owner.get(PATH)).html),
      /Limited key_\w+ Requests Full access one domain from 127\.0\.0\.1, 2001:/,
    );
  });

  for (const [field, fields, problem] of [
    ['expires_at', { expires_at: '2020-01-01T00:00' }, 'must be in the future'],
    ['expires_at', { expires_at: 'tomorrow' }, 'is not a day and time'],
    ['allowed_ips', { allowed_ips: '127.0.0.1 nowhere' }, 'nowhere '],
    ['preset', { preset: 'root' }, 'is not one of the choices'],
    ['name', { name: 'x'.repeat(101) }, 'must be at most 100 characters'],
  ] as const) {
    it(`is refused at ${field}: ${problem}`, async () => {
      const { status, html } = await make(fields);
      assert.equal(status, 422);
      assert.match(html, new RegExp(`id="field-${field}-problem"[^>]*>${problem}`));
      assert.ok(!html.includes('sw_live_'), 'no key is created');
    });
  }

  it('is not limited to a domain of another organization', async () => {
    const theirs = await (await service.organization()).addDomain('theirs.example.com');
    const { status, html } = await make({ domain_ids: [theirs] });
    assert.equal(status, 422);
    assert.ok(textOf(html).includes('there is no domain with this id'), textOf(html));
  });

  it('expires at a time in the time zone in which its form was shown', async () => {
    const person = await signedIn(service, ours.id);
    const form = await person.get(`${PATH}/new`);
    const [, zone = ''] = /name="time_zone" value="([^"]*)"/.exec(form.html) ?? [];
    await person.change('/dashboard/account/time-zone', { time_zone: 'Asia/Kolkata' });
    const fields = { preset: 'full_access', expires_at: '2099-01-02T03:04', time_zone: zone };
    const refused = await person.post(`${PATH}/new`, { ...fields, allowed_ips: 'nowhere' });
    assert.ok(textOf(refused.html).includes('Expires (UTC)'), textOf(refused.html));
    await person.post(`${PATH}/new`, fields);
    assert.equal((await latestAudit(service, 'keys.create'))?.detail['expires_at'], '2099-01-02T03:04:00.000Z');
  });

  it('shows that its domain does not exist, also in an organization without domains', async () => {
    const without = await service.organization();
    await service.pool.query('DELETE FROM domains WHERE org_id = $1', [without.id]);
    const person = await signedIn(service, without.id);
    const path = `${PATH}/new`;
    assert.ok(!(await person.get(path)).html.includes('<legend>Domains'));
    const { status, html } = await person.post(path, { preset: 'full_access', domain_ids: 'dom_deleted' });
    assert.equal(status, 422);
    assert.ok(textOf(html).includes('there is no domain with this id'), textOf(html));
  });

  it('is not limited to a domain id with a NUL', async () => {
    const { status, html } = await make({ domain_ids: ['dm_none\0'] });
    assert.equal(status, 422);
    assert.ok(textOf(html).includes('must not contain control characters'), textOf(html));
  });

  it('of an organization without a domain links to the domains', async () => {
    const empty = await service.organization();
    await service.pool.query('DELETE FROM domains WHERE org_id = $1', [empty.id]);
    const { html } = await make({ preset: 'sending_access' }, await signedIn(service, empty.id));
    assert.ok(html.includes('href="/dashboard/domains"'), textOf(html));
    assert.ok(!html.includes('curl '), 'no request that fails');
  });
});

describe('the list of keys', () => {
  it('shows the last use and the expiry of each key, and revokes one immediately', async () => {
    const { key, id } = keyOf(await make({ name: 'Old' }));
    assert.match(textOf((await owner.get(PATH)).html), new RegExp(`Old ${id} Requests Full access none never`));
    assert.equal((await service.call('GET', '/v1/emails', { key })).status, 200);
    const neverUsed = new RegExp(`${id} Requests Full access none never`);
    await eventually('the use is recorded', async () => !neverUsed.test(textOf((await owner.get(PATH)).html)));
    await service.pool.query(
      `UPDATE api_keys SET last_used_at = '2026-03-01T09:30:00Z', expires_at = '2026-03-02T00:00:00Z' WHERE id = $1`,
      [id],
    );
    const text = textOf((await owner.get(PATH)).html);
    assert.match(
      text,
      new RegExp(`${id} Requests Full access none 2026-03-01 09:30:00 UTC [\\d:-]+ [\\d:]+ UTC expired 2026-03-02`),
    );
    const { key: other, id: otherId } = keyOf(await make({}));
    const revoked = await owner.change(`${PATH}/${otherId}/revoke`);
    assert.ok(textOf(revoked.html).includes('The API key was revoked'), textOf(revoked.html));
    assert.ok(!revoked.html.includes(otherId), 'it is no longer listed');
    assert.equal((await service.call('GET', '/v1/emails', { key: other })).status, 401);
    assert.equal((await owner.post(`${PATH}/${otherId}/revoke`)).status, 404);
  });

  it('shows the usage of the quota', async () => {
    const counted = await service.organization();
    const ada = await signedIn(service, counted.id);
    await counted.sent();
    assert.match(textOf((await ada.get(`${PATH}/usage`)).html), /Used this month \(UTC\) 1 Quota none/);
    await setQuota(service.pool, counted.id, 5_000);
    await counted.sent();
    assert.match(textOf((await ada.get(`${PATH}/usage`)).html), /Used this month \(UTC\) 2 Quota 5,000/);
    assert.ok((await ada.get(PATH)).html.includes(`<a href="${PATH}/usage">`));
  });
});

describe('the name of a key', () => {
  it('is changed by an owner, and shown with the time of its creation', async () => {
    const dateNow = () => new Date().toISOString().slice(0, 10);
    const before = dateNow();
    const { id } = keyOf(await make({ name: 'Shop' }));
    const after = dateNow();
    const shown = await owner.change(`${PATH}/${id}/edit`, { name: 'Shop <2>' });
    assert.ok(textOf(shown.html).includes(`Shop <2> ${id}`), textOf(shown.html));
    assert.ok(!shown.html.includes('<2>'), 'a name is escaped');
    assert.match(shown.html, new RegExp(`Created[\\s\\S]*datetime="(?:${before}|${after})`));
    const [entry] = await listAudit(service.pool, ours.id, null, 1);
    assert.deepEqual([entry?.action, entry?.target, entry?.detail], ['keys.update', id, { name: 'Shop <2>' }]);
  });

  it('may be removed, but not be longer than a line of 100 characters', async () => {
    const { id } = keyOf(await make({ name: 'Shop' }));
    for (const name of ['x'.repeat(101), 'a\nb']) {
      const refused = await owner.post(`${PATH}/${id}/edit`, { name });
      assert.equal(refused.status, 422);
      assert.match(refused.html, /id="field-name-problem"/);
    }
    assert.ok((await owner.get(`${PATH}/${id}/edit`)).html.includes('value="Shop"'));
    await owner.change(`${PATH}/${id}/edit`, { name: '' });
    const { body } = await ours.call('GET', `/v1/keys/${id}`);
    assert.equal((body as { name: unknown }).name, null);
  });

  it('is shown with its id in the audit log, as actor and as target, also after it was revoked', async () => {
    const { id, key } = keyOf(await make({ name: 'Shop <3>', preset: 'full_access' }));
    await service.call('POST', '/v1/suppressions', { key, json: { email: 'a@example.net' } });
    await owner.change(`${PATH}/${id}/revoke`);
    const { html } = await owner.get('/dashboard/audit');
    const text = textOf(html);
    assert.ok(text.includes(`Shop <3> API key ${id} suppressions.create`), text);
    assert.ok(text.includes(`keys.create Shop <3> ${id}`), text);
    assert.ok(!html.includes('<3>'), 'a name is escaped');
    assert.ok(html.includes(`title="Shop &lt;3&gt; (${id})"`), 'the whole of it is the title of a short cell');
  });

  it('of a revoked key is not changed', async () => {
    const { id } = keyOf(await make({ name: 'Gone' }));
    await owner.change(`${PATH}/${id}/revoke`);
    assert.equal((await owner.post(`${PATH}/${id}/edit`, { name: 'Back' })).status, 404);
  });
});
