import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { resumeOrganization, suspendOrganization } from '../../src/accounts/suspension.ts';
import { makeUnsubscribeTokens } from '../../src/domain/email/unsubscribe-token.ts';
import { deliverEmails } from '../../src/delivery/email/deliver.ts';
import { makeTrack } from '../../src/delivery/email/tracking.ts';
import { newId } from '../../src/lib/ids.ts';
import { makeTrackingTokens } from '../../src/domain/email/tracked-links.ts';
import { makeNetworkLimits } from '../../src/intake/network-limits.ts';
import { project } from '../../src/projection/emails.ts';
import { smtp } from '../../src/providers/smtp/smtp.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { makePool } from '../../src/store/postgres/pool.ts';
import { harness } from '../delivery/harness.ts';
import { simulator } from '../providers/simulator.ts';
import { databaseProxy } from '../store/proxy.ts';
import { eventually } from '../support/eventually.ts';
import { assertRefused, bodyOf, SECRET_KEY, startService, useService } from './service.ts';

const service = await useService({ publicUrl: 'https://mail.example.com' });
const ours = await service.organization();
const tokens = makeTrackingTokens(SECRET_KEY);

const CHROME = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/124.0.0.0 Safari/537.36';
const TARGET = 'https://shop.example/p?a=1&b=%20#c';

/** An email that was sent long ago, with the paths of its image and its link. */
async function sentEmail(url = TARGET) {
  const id = await ours.sent();
  await project(service.pool, 'sent', [{ id }]);
  const about = { emailId: id, recipient: 0, sentAt: 0 };
  return { id, image: `/t/o/${tokens.makeOpen(about)}`, link: `/t/c/${tokens.makeClick(about, url)}` };
}

const ask = (path: string, { method = 'GET', url = service.url, ...headers }: Record<string, string> = {}) =>
  fetch(url + path, { method, headers: { 'user-agent': CHROME, ...headers }, redirect: 'manual' });
const reached = (id: string, status: string) =>
  eventually(`${id} is ${status}`, async () => (await ours.email(id))['status'] === status);
const typesOf = async (id: string): Promise<string[]> =>
  ((await ours.email(id))['events'] as { type: string }[])
    .map(({ type }) => type)
    .filter((type) => /open|click/.test(type));

describe('GET /t/o/:token', () => {
  it('returns an image of one pixel that nothing stores, and records the open', async () => {
    const { id, image } = await sentEmail();
    const answer = await ask(`${image}?utm_source=x`);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-type'), 'image/gif');
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.equal(answer.headers.get('set-cookie'), null);
    const bytes = Buffer.from(await answer.arrayBuffer());
    assert.deepEqual([bytes.subarray(0, 6).toString(), bytes.readUInt16LE(6), bytes.readUInt16LE(8)], ['GIF89a', 1, 1]);
    await reached(id, 'opened');
    assert.deepEqual(await typesOf(id), ['email.opened']);
  });
});

describe('GET /t/c/:token', () => {
  it('redirects to exactly the signed target without a referrer or cookie, and records the click', async () => {
    const { id, link } = await sentEmail();
    const answer = await ask(`${link}?fbclid=x`);
    assert.equal(answer.status, 302);
    assert.equal(answer.headers.get('location'), TARGET);
    assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.equal(answer.headers.get('set-cookie'), null);
    await reached(id, 'clicked');
  });

  it('is no open redirect: no other target, query or token leads anywhere', async () => {
    const { link, image } = await sentEmail();
    const token = link.slice('/t/c/'.length);
    const [claim = '', signature = ''] = token.split(/\.(?=[^.]*$)/);
    const evil = Buffer.from('https://evil.example/').toString('base64url');
    const forged = claim.replace(/[^.]*$/, evil);
    const other = makeTrackingTokens('another secret key, also long enough');
    for (const path of [
      `/t/c/${forged}.${signature}`,
      `/t/c/${forged}.${'A'.repeat(22)}`,
      `/t/c/${other.makeClick({ emailId: newId('em', 1), recipient: 0, sentAt: 0 }, 'https://evil.example/')}`,
      `/t/c/${image.slice('/t/o/'.length)}`,
      `/t/o/${token}`,
      '/t/c/https:%2F%2Fevil.example',
      '/t/c/?url=https://evil.example',
      `/t/c/${'a'.repeat(8_000)}`,
    ]) {
      const answer = await service.call('GET', path, { headers: { 'user-agent': CHROME } });
      assert.equal(answer.status, 404, path);
      assert.equal(answer.headers['location'], undefined, path);
    }
    const led = await ask(`${link}?url=https://evil.example&to=//evil.example`);
    assert.equal(led.headers.get('location'), TARGET);
  });

  it('accepts no other method', async () => {
    const { link } = await sentEmail();
    assertRefused(await service.call('POST', link), 405, 'method_not_allowed');
  });
});

describe('a request that is not of a person', () => {
  it('is answered without a record if it is HEAD', async () => {
    const { id, image, link } = await sentEmail();
    for (const [path, status] of [
      [image, 200],
      [link, 302],
    ] as const) {
      assert.equal((await ask(path, { method: 'HEAD' })).status, status);
    }
    // A later request of the same process is recorded after them.
    const later = await sentEmail();
    await ask(later.image);
    await reached(later.id, 'opened');
    assert.deepEqual(await typesOf(id), []);
  });

  it('is recorded and leaves the status if its user agent or purpose is that of a machine', async () => {
    for (const headers of [{ 'user-agent': 'Mozilla/5.0' }, { 'sec-purpose': 'prefetch' }, { purpose: 'prefetch' }]) {
      const { id, image, link } = await sentEmail();
      await ask(image, headers);
      const answer = await ask(link, headers);
      assert.equal(answer.headers.get('location'), TARGET, 'it is redirected like a person');
      await eventually('both are recorded', async () => (await typesOf(id)).length === 2);
      const { status, events } = (await ours.email(id)) as { status: string; events: { machine?: boolean }[] };
      assert.equal(status, 'sent', JSON.stringify(headers));
      const flags = events.map(({ machine }) => machine);
      assert.deepEqual(flags, [undefined, undefined, true, true]);
    }
  });
});

describe('tracking links', () => {
  it('work for the reader while the database is away', async () => {
    const { image, link } = await sentEmail();
    const proxy = await databaseProxy(service.databaseUrl);
    const pool = makePool(proxy.url, 'away', 2, () => undefined);
    const other = await startService({ pool });
    try {
      await proxy.close();
      assert.equal((await ask(image, { url: other.url })).status, 200);
      assert.equal((await ask(link, { url: other.url })).headers.get('location'), TARGET);
      await eventually('the log states it', () =>
        other.log.some((line) => line.includes('open or click not recorded')),
      );
    } finally {
      await other.close();
      await pool.end();
    }
  });

  it('lead nowhere while their organization is suspended, and those of others and unsubscribe links work', async () => {
    const suspended = await service.organization();
    const [{ link: other }, id] = [await sentEmail(), await suspended.sent()];
    await suspendOrganization(service.pool, suspended.id, null);
    const link = `/t/c/${tokens.makeClick({ emailId: id, recipient: 0, sentAt: 0 }, TARGET)}`;
    const token = makeUnsubscribeTokens(SECRET_KEY).make({ orgId: suspended.id, emailId: id, position: 0 });
    // A process reads at most twice a minute whether any organization is suspended.
    const fresh = await startService({ pool: service.pool });
    try {
      const answer = await ask(link, { url: fresh.url });
      assert.deepEqual([answer.status, answer.headers.get('location')], [404, null]);
      assert.equal((await ask(other, { url: fresh.url })).headers.get('location'), TARGET);
      assert.equal((await ask(`/unsubscribe/${token}`, { url: fresh.url })).status, 200);
      await resumeOrganization(service.pool, suspended.id);
      assert.equal((await ask(link, { url: fresh.url })).headers.get('location'), TARGET);
    } finally {
      await fresh.close();
    }
  });

  it('count against the limit of the network, like unsubscribe links', async () => {
    const limited = await startService({ networks: makeNetworkLimits(1) });
    try {
      const { link } = await sentEmail();
      const statuses: number[] = [];
      for (let i = 0; i < 7; i++) statuses.push((await ask(link, { url: limited.url })).status);
      assert.deepEqual([statuses[0], statuses.at(-1)], [302, 429]);
    } finally {
      await limited.close();
    }
  });
});

describe('PATCH /v1/domains/:id', () => {
  it('switches each kind of tracking by itself, and both are off at first', async () => {
    const id = await ours.addDomain('switched.example.com');
    const patch = async (json: object) => {
      const { open_tracking, click_tracking } = bodyOf(await ours.call('PATCH', `/v1/domains/${id}`, { json }), 200);
      return [open_tracking, click_tracking];
    };
    assert.deepEqual(await patch({}), [false, false]);
    assert.deepEqual(await patch({ open_tracking: true }), [true, false]);
    assert.deepEqual(await patch({ click_tracking: true, open_tracking: null }), [true, true]);
    assert.deepEqual(await patch({ open_tracking: false }), [false, true]);
    const { domains } = bodyOf<{ domains: Record<string, unknown>[] }>(await ours.call('GET', '/v1/domains'), 200);
    assert.equal(domains.find((domain) => domain['id'] === id)?.['click_tracking'], true);
  });
});

test('an email by SMTP is tracked from its domain setting to the events of its recipient', async (t) => {
  const { smtpUrl, inbox } = await simulator(t);
  const { domains } = bodyOf<{ domains: { id: string; name: string }[] }>(await ours.call('GET', '/v1/domains'), 200);
  const domainId = domains.find(({ name }) => name === ours.domain)?.id;
  const on = { open_tracking: true, click_tracking: true };
  bodyOf(await ours.call('PATCH', `/v1/domains/${domainId}`, { json: on }), 200);
  const html = `<html><body><a href="${TARGET.replace('&', '&amp;')}">Shop</a> ü</body></html>`;
  const to = 'reader@example.net';
  const id = await ours.sent({ to, html, text: `Shop: ${TARGET}` });
  const { deps } = harness(service.pool, ours.id, []);
  const sendingDeps = {
    ...deps,
    contents: makeEmailContents(SECRET_KEY),
    providers: [smtp(smtpUrl)],
    track: makeTrack(service.url, SECRET_KEY, deps.log),
  };
  await deliverEmails(sendingDeps, [{ id, version: 0 }]);
  const [message = assert.fail()] = await inbox(to);
  assert.equal(message.text?.trim(), `Shop: ${TARGET}`);
  const [link = '', image = ''] = [...(message.html ?? '').matchAll(/"(http:[^"]+\/t\/[oc]\/[^"]+)"/g)].map(
    ([, url]) => url,
  );
  const before = html.replace(TARGET.replace('&', '&amp;'), link);
  assert.equal(message.html?.trim().replace(/<img [^>]*>/, ''), before);
  assert.equal((await ours.email(id))['status'], 'sent', 'nothing follows links by itself');

  assert.equal((await ask(image.slice(service.url.length))).status, 200);
  await reached(id, 'opened');
  const answer = await ask(link.slice(service.url.length));
  assert.equal(answer.headers.get('location'), TARGET);
  await reached(id, 'clicked');
  assert.deepEqual(await typesOf(id), ['email.opened', 'email.clicked']);
});
