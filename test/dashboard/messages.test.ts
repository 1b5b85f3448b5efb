import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { project } from '../../src/projection/emails.ts';
import { inFuture, type Organization, useService } from '../http/service.ts';
import { latestAudit, type Page, signedIn, textOf, type Visitor } from './visitor.ts';

const service = await useService();

const polls = ({ html }: Page) => html.includes('hx-trigger="every 3s"');
const newMember = async (): Promise<[Organization, Visitor]> => {
  const organization = await service.organization();
  return [organization, await signedIn(service, organization.id, 'member')];
};
const page = async (visitor: Visitor, path: string): Promise<Page> => {
  const shown = await visitor.get(path);
  assert.equal(shown.status, 200, textOf(shown.html));
  return shown;
};

describe('batches', () => {
  it('show their progress, link to their emails, and can be canceled', async () => {
    const [ours, member] = await newMember();
    assert.ok(textOf((await page(member, '/dashboard/batches')).html).includes('/v1/emails/batch'), 'how to send one');
    const emails = [ours.mail(), ours.mail(), ours.mail({ scheduled_at: inFuture({ hours: 1 }) })];
    const { body } = await ours.call('POST', '/v1/emails/batch', { json: { emails } });
    const { id } = body as { id: string };
    const list = await page(member, '/dashboard/batches');
    assert.match(list.html, /<progress[^>]* max="3" value="0"/);
    assert.ok(polls(list), 'two are queued');

    const { rows } = await service.pool.query<{ id: string }>(
      `SELECT id FROM emails WHERE batch_id = $1 AND status = 'queued'`,
      [id],
    );
    await project(service.pool, 'sent', rows);
    const shown = await page(member, `/dashboard/batches/${id}`);
    assert.match(shown.html, /<progress[^>]* max="3" value="2"/);
    assert.ok(shown.html.includes(`/dashboard/emails?batch_id=${id}`), 'its emails');
    assert.match(textOf(shown.html), /scheduled 1 33.3 % sent 2 66.7 % Delivered 0 % 0 of 2 sent/);
    const canceled = await member.change(`/dashboard/batches/${id}/cancel`);
    assert.ok(textOf(canceled.html).includes('1 email was canceled.'), textOf(canceled.html));
    assert.ok(!polls(canceled), 'no email is pending');
    assert.ok(!canceled.html.includes('/cancel"'), 'no email can be canceled');
    assert.equal((await member.post(`/dashboard/batches/${id}/cancel`)).status, 422);
  });

  it('are named by their first subject, read scheduled while all is, and list what failed', async () => {
    const [ours, member] = await newMember();
    const scheduled_at = inFuture({ hours: 1 });
    const emails = ['First', 'Second'].map((subject) => ours.mail({ subject, scheduled_at }));
    const { body } = await ours.call('POST', '/v1/emails/batch', { json: { emails } });
    const { id } = body as { id: string };
    const path = `/dashboard/batches/${id}`;
    for (const each of ['/dashboard/batches', path]) {
      const text = textOf((await page(member, each)).html);
      assert.ok(text.includes('First') && text.includes('scheduled') && !text.includes('queued'), text);
    }
    const { rows } = await service.pool.query<{ id: string }>(`SELECT id FROM emails WHERE batch_id = $1 ORDER BY id`, [
      id,
    ]);
    await project(service.pool, 'claimed', rows);
    await project(service.pool, 'failed', [{ id: rows[1]?.id ?? '', error: 'given up' }]);
    const shown = await page(member, path);
    assert.ok(shown.html.includes(`/dashboard/emails/${rows[1]?.id}`), 'the failed one');
    assert.ok(!shown.html.includes(`/dashboard/emails/${rows[0]?.id}`), 'no other');
  });
});

describe('tags', () => {
  it('are listed with their counts, and have statistics of their own', async () => {
    const [[ours, member], [theirs]] = [await newMember(), await newMember()];
    assert.ok(textOf((await page(member, '/dashboard/tags')).html).includes('No tags yet'));
    const tags = [{ name: 'kind', value: 'receipt' }];
    const id = await ours.sent({ tags });
    await ours.sent();
    await theirs.sent({ tags });
    await project(service.pool, 'delivered', [{ id }]);
    const list = await page(member, '/dashboard/tags');
    assert.ok(textOf(list.html).includes('kind:receipt 1'), textOf(list.html));
    assert.ok(list.html.includes('href="/dashboard/tags?tag=kind%3Areceipt"'));
    const shown = await page(member, '/dashboard/tags?tag=kind:receipt');
    const text = textOf(shown.html);
    assert.ok(text.includes('Delivered 100 % 1 of 1 sent'), text);
    assert.match(text, /Bounced 0 % 0 of 1 sent .{0,60} Keep it below 2\.0 %, never above 5\.0 % Complained/);
    assert.match(text, /Complained 0 % 0 of 1 delivered .{0,60} Keep it below 0\.10 %, never above 0\.30 % Opened/);
    assert.match(shown.html, /\/dashboard\/emails\?tag=kind%3Areceipt&(?:amp;|#38;)?status=delivered/);
    assert.equal((await member.get('/dashboard/tags?tag=x')).status, 404);
  });
});

describe('chat messages', () => {
  it('are listed by status and recipient, with the reason of a failure', async () => {
    const [ours, member] = await newMember();
    const empty = textOf((await page(member, '/dashboard/chatapp')).html);
    assert.ok(empty.includes('WhatsApp messages') && empty.includes('/v1/chatapp'), 'how to send one');
    await ours.call('POST', '/v1/chatapp/numbers', {
      json: { number: '+12025550142', provider: 'twilio', auth_token: 'token' },
    });
    const send = async (to: string, ...tags: object[]) => {
      const { body } = await ours.call('POST', '/v1/chatapp', { json: { to, text: 'Hi <there>.', tags } });
      return (body as { id: string }).id;
    };
    const tag = (name: string, value: string) => ({ name, value });
    const ada = await send('+14165550123', tag('kind', 'code'), tag('plan', 'pro'));
    const bob = await send('+447400123456', tag('kind', 'code'));
    await service.pool.query(
      `UPDATE chat_messages SET status = 'failed', error = 'Not on <WhatsApp>.', error_code = '63024' WHERE id = $1`,
      [bob],
    );
    const found = async (query: string) =>
      [...(await page(member, `/dashboard/chatapp${query}`)).html.matchAll(/id="open-(wa_\w+)"/g)].map(([, id]) => id);
    assert.deepEqual(await found(''), [bob, ada]);
    assert.deepEqual(await found('?status=queued'), [ada]);
    assert.deepEqual(await found('?to=%2B1+(416)+555-0123'), [ada]);
    assert.deepEqual(await found('?to=%2B14165550123&status=failed'), []);
    assert.deepEqual(await found('?tag=kind:code'), [bob, ada]);
    assert.deepEqual(await found('?tag=kind%3Acode+plan%3Apro'), [ada]);
    assert.deepEqual(await found('?tag=kind:code&tag=plan:pro&status=failed'), []);
    for (const [query, field] of [
      ['to=x', 'to'],
      ['tag=x', 'tag'],
    ] as const) {
      const wrong = await member.get(`/dashboard/chatapp?${query}`);
      assert.equal(wrong.status, 422);
      assert.ok(wrong.html.includes(`id="field-${field}-problem"`), 'at its field');
      assert.deepEqual([...wrong.html.matchAll(/id="open-/g)], []);
    }
    const failed = await page(member, `/dashboard/chatapp/${bob}`);
    assert.ok(textOf(failed.html).includes('Not on <WhatsApp>. (63024)'), textOf(failed.html));
    assert.ok(textOf(failed.html).includes('Hi <there>.') && !failed.html.includes('<there>'), 'its text, escaped');
    assert.ok(
      !polls(failed) && polls(await page(member, `/dashboard/chatapp/${ada}`)),
      'only a queued message is polled',
    );
  });
});

describe('the search', () => {
  it('opens the page of the object whose id it is given, unless it belongs to another organization', async () => {
    const [[ours, member], [, outsider]] = [await newMember(), await newMember()];
    await ours.addSender('+12025550144');
    const made = async (path: string, json: Record<string, unknown>) =>
      ((await ours.call('POST', path, { json })).body as { id: string }).id;
    const sms = await made('/v1/sms', { to: '+14165550123', text: 'Hi.' });
    const domain = await made('/v1/domains', { name: `${sms.slice(-8)}.example.com` });
    const search = (by: Visitor, id: string) => by.get(`/dashboard/emails?q=${id}`);
    assert.equal((await search(member, sms)).location, `/dashboard/sms/${sms}`);
    assert.equal((await search(member, domain)).location, `/dashboard/domains/${domain}`);
    const request = `req_${sms.slice(-26)}`;
    assert.equal((await search(member, request)).location, `/dashboard/requests?request_id=${request}`);
    for (const id of [sms, domain]) assert.equal((await search(outsider, id)).status, 200);
  });
});

describe('a scheduled SMS', () => {
  it('is rescheduled and canceled by members, and refused with the input in the form', async () => {
    const [ours, member] = await newMember();
    await ours.addSender('+12025550143');
    const json = { to: '+14165550123', text: 'Hi.', scheduled_at: inFuture({ hours: 1 }) };
    const { body } = await ours.call('POST', '/v1/sms', { json });
    const path = `/dashboard/sms/${(body as { id: string }).id}`;
    const message = async () =>
      (await ours.call('GET', path.replace('dashboard', 'v1'))).body as Record<string, unknown>;

    const at = inFuture({ hours: 30 }).slice(0, 16);
    const moved = await member.change(`${path}/reschedule`, { scheduled_at: at, time_zone: 'UTC' });
    assert.match(textOf(moved.html), /Rescheduled to .* \(UTC\)\./);
    assert.equal((await message())['scheduled_at'], `${at}:00.000Z`);
    const refused = await member.post(`${path}/reschedule`, { scheduled_at: '2020-01-01T10:00', time_zone: 'UTC' });
    assert.equal(refused.status, 422);
    assert.match(refused.html, /id="field-scheduled_at-problem"/);
    assert.match(refused.html, /value="2020-01-01T10:00"/);

    const viewer = await signedIn(service, ours.id, 'viewer');
    assert.ok(!(await page(viewer, path)).html.includes(`${path}/cancel`), 'viewers cannot cancel');
    const canceled = await member.change(`${path}/cancel`);
    assert.ok(textOf(canceled.html).includes('Message canceled.'), textOf(canceled.html));
    assert.ok(
      !canceled.html.includes(`${path}/cancel`) && !canceled.html.includes(`${path}/reschedule`),
      'it is final',
    );
    assert.equal((await message())['status'], 'canceled');
    assert.equal((await latestAudit(service, 'sms.cancel'))?.target, (await message())['id']);
    assert.equal((await member.post(`${path}/cancel`)).status, 422);
  });
});

describe('the overview', () => {
  it('begins with a request that works as shown', async () => {
    const [ours, member] = await newMember();
    const { html } = await page(member, '/dashboard');
    const command =
      /<code>(curl [^<]*)<\/code>/
        .exec(html)?.[1]
        ?.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))) ?? '';
    assert.ok(command.startsWith(`curl ${service.url}/v1/emails`), command);
    const json = JSON.parse(/-d '(.*)'$/s.exec(command)?.[1] ?? '') as Record<string, unknown>;
    assert.equal((await ours.call('POST', '/v1/emails', { json })).status, 202);
  });

  it('draws the counts of its tables, of its own organization only', async () => {
    const [[ours, member], [theirs]] = [await newMember(), await newMember()];
    const [one, two] = [await ours.sent(), await ours.sent()];
    await ours.sent({ scheduled_at: inFuture({ ms: 60_000 }) });
    for (let n = 0; n < 5; n++) await theirs.sent();
    await project(service.pool, 'sent', [{ id: one }]);
    await project(service.pool, 'bounced', [
      { id: two, recipient: 'x@example.net', error: 'no', bounce_reason: 'mailbox_full' },
    ]);
    await service.pool.query(
      `INSERT INTO webhook_endpoints (id, org_id, url, events, status, disabled_reason, secret)
       VALUES ('wh_1', $1, 'https://hooks.example.com/x', '{}', 'disabled', 'failing for five days', '')`,
      [ours.id],
    );
    await service.pool.query(
      `INSERT INTO domains (id, org_id, name, status) VALUES ('dm_1', $1, 'broken.example', 'failed')`,
      [ours.id],
    );
    const shown = await page(member, '/dashboard');
    const bars = [...shown.html.matchAll(/<title>([^<]* UTC: [^<]*)<\/title>/g)].map(([, title = '']) => title);
    assert.equal(bars.length, 24);
    const drawn = bars.filter((title) => !title.endsWith('no email'));
    assert.deepEqual(
      drawn.map((title) => title.split('UTC: ')[1]),
      ['1 bounced, rejected or failed, 1 sent, 1 waiting'],
    );
    const text = textOf(shown.html);
    for (const part of [
      'mailbox full 1',
      'Delivered 0 % 0 of 2 sent',
      'Bounced 50.0 % 1 of 2 sent',
      'Too high: keep it below 2.0 %, never above 5.0 %',
      'Keep it below 0.10 %, never above 0.30 %',
      'accepted 3 100 % sent 2 66.7 % bounced 1 33.3 %',
      'Queued now 0',
      'Scheduled for the next hour 1',
      'https://hooks.example.com/x is disabled: failing for five days',
      'broken.example failed its verification',
    ]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.match(text, /p95 sent 1 [\d.]+ m?s [\d.]+ m?s delivered 0 – –/);
    assert.equal((await member.get('/dashboard?range=1y')).status, 422);
  });
});
