import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { listAudit } from '../../src/store/accounts/audit.ts';
import { record, startRegistrar } from '../http/registrar.ts';
import { startService } from '../http/service.ts';
import { signedIn, textOf } from './visitor.ts';

const PATH = '/dashboard/domains';

const registrar = await startRegistrar();
after(() => registrar.close());
const owner = await signedIn(registrar.service, registrar.ours.id);
const member = await signedIn(registrar.service, registrar.ours.id, 'member');
beforeEach(() => registrar.dns.fail(undefined));

/** Adds a domain by the form. @returns its id */
async function add(name: string): Promise<string> {
  const { status, location = '', html } = await owner.post(`${PATH}/new`, { name });
  assert.equal(status, 303, textOf(html));
  assert.match(location, new RegExp(`^${PATH}/dm_\\w+$`));
  return location.slice(PATH.length + 1);
}

describe('a domain', () => {
  it('is added, and its records are shown', async () => {
    const name = registrar.fresh();
    const id = await add(` ${name.toUpperCase()} `);
    const { html } = await owner.get(`${PATH}/${id}`);
    assert.ok(textOf(html).includes('Now add these records at your DNS provider.'), textOf(html));
    const domain = await registrar.get(id);
    assert.equal(domain.name, name);
    for (const { name: at, value } of domain.records) {
      for (const part of [at, value]) assert.ok(html.includes(`<code>${part}</code>`), part);
    }
    assert.match(textOf(html), /OWNERSHIP required pending/);
    assert.match(textOf(html), /SPF recommended pending/);
    assert.match(textOf(html), /_dmarc\S* Copy _dmarc\S* in the zone \S+/, 'names within the zone');
    const [entry] = await listAudit(registrar.service.pool, registrar.ours.id, null, 1);
    assert.deepEqual([entry?.action, entry?.target, entry?.detail], ['domains.create', id, { name }]);
  });

  it('is refused at the field if it is a public suffix or registered', async () => {
    const name = registrar.fresh();
    await add(name);
    for (const [given, status, problem] of [
      ['co.uk', 422, 'co.uk is a public suffix'],
      [name, 409, `the domain ${name} is registered already`],
      ['https://localhost/', 422, '"https://localhost/" is not a domain name'],
    ] as const) {
      const refused = await owner.post(`${PATH}/new`, { name: given });
      assert.equal(refused.status, status, given);
      assert.match(
        refused.html,
        new RegExp(`id="field-name-problem"[^>]*>${problem.replaceAll('"', '(?:"|&#34;|&quot;)')}`),
      );
      assert.ok(refused.html.includes(`value="${given}"`), 'the input stays');
    }
  });

  it('is checked: shows the found records and errors, then that it is verified', async () => {
    const { dns } = registrar;
    const id = await add(registrar.fresh());
    const ownership = record(await registrar.get(id), 'OWNERSHIP');
    dns.txt(ownership.name, 'sendwright-verification=<b>wrong</b>');
    const wrong = await member.change(`${PATH}/${id}/verify`);
    assert.ok(textOf(wrong.html).includes('Some records are still missing'), textOf(wrong.html));
    assert.match(textOf(wrong.html), /OWNERSHIP required failed/);
    assert.ok(textOf(wrong.html).includes('Current value: sendwright-verification=<b>wrong</b>'), textOf(wrong.html));
    assert.ok(!wrong.html.includes('<b>'), 'values from DNS are escaped');
    const { error } = record(await registrar.get(id), 'OWNERSHIP');
    assert.ok(error !== null && textOf(wrong.html).includes(error), String(error));
    assert.match(textOf(wrong.html), /DKIM ?: there is no such record yet\. Current value: no record/);

    registrar.publish(await registrar.get(id));
    await registrar.service.pool.query('UPDATE domains SET asked_at = NULL WHERE id = $1', [id]);
    const right = await member.change(`${PATH}/${id}/verify`);
    assert.ok(textOf(right.html).includes('The domain is verified'), textOf(right.html));
    assert.match(textOf(right.html), /OWNERSHIP required verified/);
    assert.equal((await registrar.get(id)).status, 'verified');
    assert.match(textOf((await member.get(PATH)).html), new RegExp(`${(await registrar.get(id)).name} verified`));
  });

  it('has its records as a zone file', async () => {
    const id = await add(registrar.fresh());
    const { headers, html } = await member.get(`${PATH}/${id}/zone`);
    const { name, records } = await registrar.get(id);
    assert.match(String(headers['content-type']), /^text\/plain/);
    assert.equal(headers['content-disposition'], `attachment; filename="${name}.zone"`);
    const lines = html.trim().split('\n');
    assert.equal(lines.length, records.length);
    for (const { name: at, value } of records) {
      const line = lines.find((each) => each.startsWith(`${at}. 3600 IN `)) ?? '';
      assert.ok(line.replaceAll('" "', '').includes(value), `${value} in ${html}`);
    }
  });

  it('offers members a test email to themselves once it is verified', async () => {
    const { id } = await registrar.verified();
    const viewer = await signedIn(registrar.service, registrar.ours.id, 'viewer');
    assert.ok((await member.get(`${PATH}/${id}`)).html.includes('/dashboard/checklist/test-email'));
    assert.ok(!(await viewer.get(`${PATH}/${id}`)).html.includes('/dashboard/checklist/test-email'));
    const pending = await add(registrar.fresh());
    assert.ok(!(await member.get(`${PATH}/${pending}`)).html.includes('/dashboard/checklist/test-email'));
  });

  it('is deleted by an owner, and then no email is sent from it', async () => {
    const { id, name } = await registrar.verified();
    assert.equal((await registrar.send(name)).status, 202);
    assert.ok(!(await member.get(`${PATH}/${id}`)).html.includes('/delete"'), 'a member does not');
    const shown = await owner.change(`${PATH}/${id}/delete`);
    assert.ok(textOf(shown.html).includes(`${name} was deleted.`), textOf(shown.html));
    assert.equal((await registrar.send(name)).status, 403);
    assert.equal((await owner.get(`${PATH}/${id}`)).status, 404);
  });
});

describe('the tracking of a domain', () => {
  it('is switched by its form, which shows what is on, and is written to the audit log', async () => {
    // Postmark tracks its email itself, so PUBLIC_URL is not needed.
    const service = await startService({}, { senders: { postmark: true, smtpHost: null } });
    try {
      const ours = await service.organization();
      const visitor = await signedIn(service, ours.id);
      const id = await ours.addDomain('tracked.example.com');
      const page = async (path = '') => (await visitor.get(`${PATH}/${id}${path}`)).html;
      assert.match(textOf(await page()), /Opens Not tracked Clicks Not tracked Change tracking/);
      assert.doesNotMatch(await page('/tracking'), /\schecked/);
      const saved = await visitor.post(`${PATH}/${id}/tracking`, { click_tracking: 'on' });
      assert.deepEqual([saved.status, saved.location], [303, `${PATH}/${id}`]);
      assert.match(textOf(await page()), /Opens Not tracked Clicks Tracked/);
      assert.match(await page('/tracking'), /name="click_tracking"[^>]*\schecked/);
      await visitor.post(`${PATH}/${id}/tracking`, {});
      assert.match(textOf(await page()), /Clicks Not tracked/);
      const [entry] = await listAudit(service.pool, ours.id, null, 1);
      const detail = { name: 'tracked.example.com', open_tracking: false, click_tracking: false };
      assert.deepEqual([entry?.action, entry?.target, entry?.detail], ['domains.update', id, detail]);
    } finally {
      await service.close();
    }
  });

  it('is refused on the form while PUBLIC_URL is missing', async () => {
    const id = await add(registrar.fresh());
    const refused = await owner.post(`${PATH}/${id}/tracking`, { open_tracking: 'on' });
    assert.equal(refused.status, 422);
    assert.match(textOf(refused.html), /PUBLIC_URL is not set/);
    assert.match(refused.html, /name="open_tracking"[^>]*\schecked/, 'the input stays');
  });
});
