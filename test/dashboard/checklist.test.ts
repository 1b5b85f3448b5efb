import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listAudit } from '../../src/store/accounts/audit.ts';
import { setQuota } from '../../src/store/limits/quota.ts';
import { useService } from '../http/service.ts';
import { signedIn, textOf } from './visitor.ts';

const PATH = '/dashboard/checklist';
const service = await useService();

/** An organization without a key and a domain, as one that has just been created in the dashboard. */
async function fresh() {
  const ours = await service.organization();
  await service.pool.query('UPDATE api_keys SET revoked_at = now() WHERE org_id = $1', [ours.id]);
  await service.pool.query(`UPDATE domains SET status = 'pending', verified_at = NULL WHERE org_id = $1`, [ours.id]);
  const verify = () =>
    service.pool.query(`UPDATE domains SET status = 'verified', verified_at = now() WHERE org_id = $1`, [ours.id]);
  return { ours, verify, owner: await signedIn(service, ours.id) };
}

/** The steps that are done, by the words of the list. */
function doneIn(html: string): string[] {
  return [...html.matchAll(/<li class="done">([\s\S]*?)<\/li>/g)].map(([, item = '']) =>
    textOf(item).replace('Done: ', '').trim(),
  );
}

describe('the checklist', () => {
  it('ticks each step when it is done and disappears when all are', async () => {
    const { ours, verify, owner } = await fresh();
    const steps: readonly [string, () => Promise<unknown>][] = [
      ['Verify a domain', verify],
      ['Create an API key', () => owner.post('/dashboard/keys/new', { preset: 'full_access' })],
      ['Send your first email', () => owner.change(`${PATH}/test-email`, { request_id: 'first' })],
      ['Add a webhook', () => owner.post('/dashboard/webhooks/new', { url: 'https://example.com/hook' })],
    ];
    const expected: string[] = [];
    assert.match(textOf((await owner.get('/dashboard')).html), /First steps: 0 of 5 done/);
    for (const [name, run] of steps) {
      await run();
      expected.push(name);
      for (const path of ['/dashboard', PATH]) assert.deepEqual(doneIn((await owner.get(path)).html), expected, path);
    }
    await signedIn(service, ours.id, 'member');
    for (const path of ['/dashboard', PATH]) assert.ok(!(await owner.get(path)).html.includes('First steps: '), path);
  });

  it('counts an invitation as a teammate', async () => {
    const { owner } = await fresh();
    await owner.post('/dashboard/members', { email: 'new@example.com', role: 'member' });
    assert.deepEqual(doneIn((await owner.get(PATH)).html), ['Invite a teammate']);
  });

  it('refreshes itself, as a part of the page that has an address of its own', async () => {
    const { owner } = await fresh();
    const { html } = await owner.get('/dashboard');
    assert.match(html, new RegExp(`<section id="checklist"[^>]* hx-get="${PATH}"[^>]* hx-trigger="every \\d+s"`));
    assert.match((await owner.get(PATH)).html, /<section id="checklist"/);
  });

  it('is dismissed for the whole organization by a member, and not by a viewer', async () => {
    const { ours, owner } = await fresh();
    const viewer = await signedIn(service, ours.id, 'viewer');
    const member = await signedIn(service, ours.id, 'member');
    assert.ok(!(await viewer.get('/dashboard')).html.includes(`${PATH}/dismiss`));
    assert.equal((await viewer.post(`${PATH}/dismiss`)).status, 403);
    await member.change(`${PATH}/dismiss`);
    assert.ok(!(await owner.get('/dashboard')).html.includes('First steps: '));
    const [entry] = await listAudit(service.pool, ours.id, null, 1);
    assert.equal(entry?.action, 'checklist.dismiss');
    const other = await fresh();
    assert.match((await other.owner.get('/dashboard')).html, /First steps: /);
  });
});

describe('the test email', () => {
  it('goes from a verified domain to the user, once for each click', async () => {
    const { ours, verify, owner } = await fresh();
    await verify();
    const { html } = await owner.get('/dashboard');
    const [, requestId = ''] = /name="request_id" value="([^"]+)"/.exec(html) ?? [];
    assert.ok(textOf(html).includes(`Send test email to ${owner.email}`), textOf(html));
    const { status, location = '' } = await owner.post(`${PATH}/test-email`, { request_id: requestId });
    assert.equal(status, 303);
    const key = await ours.addKey('full_access');
    const { body } = await service.call('GET', `/v1/emails/${location.split('/').at(-1)}`, { key });
    const email = body as Record<string, unknown>;
    assert.deepEqual([email['to'], email['from']], [[owner.email], `Sendwright <hello@${ours.domain}>`]);
    const [entry] = await listAudit(service.pool, ours.id, null, 1);
    assert.deepEqual([entry?.action, entry?.target, entry?.detail], ['emails.send', email['id'], { test: true }]);

    const again = await owner.post(`${PATH}/test-email`, { request_id: requestId });
    assert.equal(again.status, 409);
    assert.match(textOf(again.html), /sent already/);
  });

  it('is refused without a verified domain, beyond the quota and for viewers', async () => {
    const { ours, verify, owner } = await fresh();
    const send = (by = owner) => by.post(`${PATH}/test-email`, { request_id: 'x' });
    const early = await send();
    assert.equal(early.status, 409);
    assert.match(textOf(early.html), /needs a verified domain/);
    assert.ok(!(await owner.get('/dashboard')).html.includes(`${PATH}/test-email`));
    await verify();
    assert.equal((await send(await signedIn(service, ours.id, 'viewer'))).status, 403);
    await setQuota(service.pool, ours.id, 0);
    const over = await send();
    assert.equal(over.status, 429);
    assert.match(textOf(over.html), /quota/);
    const { rows } = await service.pool.query('SELECT FROM emails WHERE org_id = $1', [ours.id]);
    assert.equal(rows.length, 0);
  });
});
