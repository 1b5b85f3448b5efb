import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import { project } from '../../src/projection/emails.ts';
import { listAudit } from '../../src/store/accounts/audit.ts';
import { readBacklog } from '../../src/store/outbox/backlog.ts';
import { recordAttempts, type NewAttempt } from '../../src/store/webhooks/attempts.ts';
import { useService } from '../http/service.ts';
import { latestAudit, type Page, signedIn, textOf } from './visitor.ts';

const PATH = '/dashboard/webhooks';
const HOOK = 'https://example.com/hook';

const service = await useService();
const ours = await service.organization('Ours');
const owner = await signedIn(service, ours.id);
const member = await signedIn(service, ours.id, 'member');
const viewer = await signedIn(service, ours.id, 'viewer');

type Endpoint = Record<string, unknown> & { id: string; status: string };

const endpointOf = async (id: string): Promise<Endpoint> =>
  (await ours.call('GET', `/v1/webhooks/${id}`)).body as Endpoint;
const make = async (fields: object = {}): Promise<Endpoint> =>
  (await ours.call('POST', '/v1/webhooks', { json: { url: HOOK, ...fields } })).body as Endpoint;
const test = async (id: string): Promise<string> =>
  ((await ours.call('POST', `/v1/webhooks/${id}/test`)).body as { id: string }).id;
const statusOf = async (id: string, delivery: string): Promise<string> =>
  ((await ours.call('GET', `/v1/webhooks/${id}/deliveries/${delivery}`)).body as { status: string }).status;

function secretOf({ status, html }: Page): string {
  assert.equal(status, 200, textOf(html));
  const [secret] = /whsec_[A-Za-z0-9+/]{43}=/.exec(textOf(html)) ?? [];
  assert.ok(secret !== undefined, textOf(html));
  return secret;
}

const FAILED: Omit<NewAttempt, 'id' | 'eventId' | 'dueAt'> = {
  at: new Date().toISOString(),
  statusCode: 500,
  durationMs: 1_234,
  response: '<b>out of order</b>',
  error: 'the answer was 500',
  status: 'failed',
  retryInMs: null,
  requestHeaders: { 'webhook-signature': 'v1,x' },
};

/** Records the results of attempts of pending deliveries. */
async function recordResults(...results: Omit<NewAttempt, 'eventId' | 'dueAt'>[]): Promise<void> {
  const { rows } = await service.pool.query<{ id: string; eventId: string; dueAt: string }>(
    `SELECT id, event_id AS "eventId", next_attempt_at AS "dueAt" FROM webhook_deliveries WHERE id = ANY ($1)`,
    [results.map(({ id }) => id)],
  );
  await recordAttempts(
    service.pool,
    rows.map((row) => ({ ...(results.find(({ id }) => id === row.id) as (typeof results)[number]), ...row })),
  );
}

describe('an endpoint', () => {
  it('is added with its types, and its secret shown once', async () => {
    const made = await owner.post(`${PATH}/new`, {
      url: HOOK,
      description: 'Order <system>',
      events: ['email.delivered', 'email.bounced'],
    });
    const secret = secretOf(made);
    const [, id = ''] = /href="\/dashboard\/webhooks\/(wh_\w+)"/.exec(made.html) ?? [];
    const { url, description, events, status } = await endpointOf(id);
    assert.deepEqual([url, description, status], [HOOK, 'Order <system>', 'enabled']);
    assert.deepEqual(events, ['email.delivered', 'email.bounced']);
    for (const path of [PATH, `${PATH}/${id}`, `${PATH}/${id}/edit`, '/dashboard/audit']) {
      const { status: answered, html } = await owner.get(path);
      assert.equal(answered, 200, path);
      assert.ok(!html.includes(secret), `${path} shows no secret`);
      assert.doesNotMatch(html.replace(/ value="[^"]*"/g, ''), /<system>/, `${path} shows text as text`);
    }
    assert.match(textOf((await viewer.get(PATH)).html), /Order <system> https:\/\/example\.com\/hook enabled/);
  });

  it('is refused at the field, and the input stays', async () => {
    const refused = await owner.post(`${PATH}/new`, {
      url: 'http://10.0.0.1/',
      description: 'x',
      events: 'email.sent',
    });
    assert.equal(refused.status, 422);
    assert.match(refused.html, /id="field-url-problem"[^>]*>must be an https URL on the public internet/);
    assert.match(refused.html, /value="http:\/\/10\.0\.0\.1\/"/);
    assert.match(refused.html, /<input[^>]* name="url"[^>]* autofocus/, 'the browser focuses the field');
    assert.match(refused.html, /value="email\.sent" checked/);
    assert.ok(!/value="email\.queued" checked/.test(refused.html), 'only what was ticked');
  });

  it('is changed, and empty fields are cleared', async () => {
    const { id } = await make({ description: 'before', events: ['email.sent'] });
    const form = await owner.get(`${PATH}/${id}/edit`);
    assert.match(form.html, /value="before"/);
    assert.match(form.html, /value="email\.sent" checked/);
    const changed = await owner.change(`${PATH}/${id}/edit`, { url: `${HOOK}/2`, description: '' });
    assert.ok(textOf(changed.html).includes('Endpoint updated.'), textOf(changed.html));
    const { url, description, events } = await endpointOf(id);
    assert.deepEqual([url, description, events], [`${HOOK}/2`, null, []]);
  });

  it('shows a URL as it is, also with parameters that are names of characters', async () => {
    const url = `${HOOK}?key=1&copy_to=crm&amp;reg`;
    const { id } = await make({ url });
    const { html } = await owner.get(`${PATH}/${id}/edit`);
    const [, value = ''] = /<input type="url" value="([^"]*)"/.exec(html) ?? [];
    assert.equal(value, `${HOOK}?key=1&amp;copy_to=crm&amp;amp;reg`);
  });

  it('has a box for each type, and its unchanged form keeps them', async () => {
    for (const subscribed of [EVENT_TYPES.slice(0, 1), EVENT_TYPES.slice(1)]) {
      const { id } = await make({ events: subscribed });
      const { html } = await owner.get(`${PATH}/${id}/edit`);
      const boxes = [...html.matchAll(/<input [^>]*name="events"[^>]*>/g)].map(([input]) => input);
      const events = boxes
        .filter((box) => box.includes('checked'))
        .map((box) => /value="([^"]+)"/.exec(box)?.[1] ?? '');
      await owner.change(`${PATH}/${id}/edit`, { url: HOOK, events });
      assert.deepEqual(((await endpointOf(id))['events'] as string[]).toSorted(), subscribed.toSorted());
    }
  });

  it('is disabled and enabled, and shows why and when Sendwright disabled it', async () => {
    const { id } = await make();
    const off = await owner.change(`${PATH}/${id}/disable`);
    assert.ok(textOf(off.html).includes('This endpoint is disabled.'), textOf(off.html));
    assert.ok(!off.html.includes(`${PATH}/${id}/test"`), 'nothing can be sent there');
    assert.equal((await endpointOf(id)).status, 'disabled');
    assert.equal((await member.post(`${PATH}/${id}/test`)).status, 409);
    await owner.change(`${PATH}/${id}/enable`);
    assert.equal((await endpointOf(id)).status, 'enabled');
    const reason = 'it answered 410 Gone';
    await service.pool.query(
      `UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = $2, disabled_at = '2026-03-01T09:30:00Z'
       WHERE id = $1`,
      [id, reason],
    );
    for (const path of [PATH, `${PATH}/${id}`]) {
      assert.ok(textOf((await viewer.get(path)).html).includes(reason), path);
    }
    assert.match(
      (await viewer.get(`${PATH}/${id}`)).html,
      /Sendwright disabled this endpoint\s+on <time datetime="2026-03-01T09:30/,
    );
  });

  it('rotates and reveals its secret and is deleted, which the audit log records', async () => {
    const { id, secret } = await make();
    const rotated = secretOf(await owner.post(`${PATH}/${id}/rotate-secret`));
    assert.notEqual(rotated, secret);
    assert.equal(secretOf(await owner.post(`${PATH}/${id}/secret`)), rotated, 'owners can reveal it');
    const gone = await owner.change(`${PATH}/${id}/delete`);
    assert.ok(textOf(gone.html).includes('Endpoint deleted.'), textOf(gone.html));
    assert.equal((await owner.get(`${PATH}/${id}`)).status, 404);
    const log = await listAudit(service.pool, ours.id, null, 10);
    const entries = log.filter(({ target, actor_id: actor }) => target === id && actor === owner.id);
    assert.deepEqual(
      entries.map(({ action }) => action),
      ['webhooks.delete', 'webhooks.reveal-secret', 'webhooks.rotate-secret'],
    );
    assert.ok(!JSON.stringify(entries).includes(rotated), 'no secret is noted');
  });

  it('is failing from the first failure until a success, in the list, its page and the overview', async () => {
    const { id } = await make({ description: 'Old <system>' });
    const isShown = async () => {
      const pages = [await viewer.get(PATH), await viewer.get(`${PATH}/${id}`), await viewer.get('/dashboard')];
      return pages.map(({ html }) => /Old <system>.*?failing/.test(textOf(html)));
    };
    assert.deepEqual(await isShown(), [false, false, false]);
    await service.pool.query(`UPDATE webhook_endpoints SET failing_since = now() WHERE id = $1`, [id]);
    assert.deepEqual(await isShown(), [true, true, true]);
    assert.match(textOf((await viewer.get(`${PATH}/${id}`)).html), /Every delivery has failed since .* after 5 days/);
    await service.pool.query(`UPDATE webhook_endpoints SET failing_since = NULL WHERE id = $1`, [id]);
    assert.deepEqual(await isShown(), [false, false, false]);
  });

  it('shows which share of the deliveries of the last 24 hours succeeded', async () => {
    const { id } = await make();
    assert.match(textOf((await viewer.get(`${PATH}/${id}`)).html), /Succeeded in the last 24 hours no deliveries/);
    const [good, bad] = [await test(id), await test(id)];
    await recordResults({ id: good, ...FAILED, status: 'succeeded', statusCode: 200 }, { id: bad, ...FAILED });
    await test(id);
    assert.match(textOf((await viewer.get(`${PATH}/${id}`)).html), /Succeeded in the last 24 hours 50\.0 % of 2/);
  });

  it('keeps the deliveries that wait while it is disabled, and states that', async () => {
    const { id } = await make();
    await test(id);
    await owner.change(`${PATH}/${id}/disable`);
    const { html } = await viewer.get(`${PATH}/${id}`);
    const text = textOf(html);
    assert.ok(text.includes('One delivery from before is waiting and will be sent when you enable it.'), text);
    assert.match(text, /webhook\.test pending .* when enabled/);
    const backlog = async () => (await readBacklog(service.pool, ours.id)).webhooks;
    const disabled = await backlog();
    const on = await owner.change(`${PATH}/${id}/enable`);
    assert.ok(textOf(on.html).includes('deliveries that were waiting'), textOf(on.html));
    assert.equal(await backlog(), disabled + 1, 'the overview counts it again');
  });
});

describe('a delivery', () => {
  it('shows its payload and every attempt with the response', async () => {
    const { id } = await make();
    const led = await member.post(`${PATH}/${id}/test`);
    const path = led.location ?? '';
    assert.match(path, new RegExp(`^${PATH}/${id}/deliveries/whd_`));
    const waiting = await member.get(path);
    assert.match(waiting.html, /hx-trigger="every 2s"/);
    assert.match(textOf(waiting.html), /Test event queued\..*pending.*Not attempted yet\..*"type": "webhook\.test"/);
    const delivery = path.split('/').at(-1) ?? '';
    await recordResults({ id: delivery, ...FAILED });
    const { html } = await viewer.get(path);
    assert.match(
      textOf(html),
      /failed.*500 1,234 ms the answer was 500 Body <b>out of order<\/b> Headers webhook-signature: v1,x/,
    );
    assert.ok(!html.includes('<b>out') && !html.includes('hx-trigger'), 'no markup, and nothing to wait for');
    assert.ok(!html.includes(`${path}/replay`), 'a viewer cannot send it again');

    const again = await member.change(`${path}/replay`);
    assert.ok(textOf(again.html).includes('Delivery queued again.'), textOf(again.html));
    assert.equal(await statusOf(id, delivery), 'pending');
  });

  it('is listed by status and in pages', async () => {
    const { id } = await make();
    const made: string[] = [];
    for (let i = 0; i < 53; i++) made.push(await test(id));
    await recordResults(...made.slice(0, 2).map((delivery) => ({ id: delivery, ...FAILED })));
    const listed = (html: string) => new Set([...html.matchAll(/deliveries\/(whd_\w+)"/g)].map((match) => match[1]));
    const first = await viewer.get(`${PATH}/${id}`);
    const [, next = ''] = /<a href="([^"]+)" rel="next">/.exec(first.html) ?? [];
    const second = await viewer.get(next.replaceAll('&amp;', '&'));
    assert.equal(listed(first.html).size, 50);
    assert.deepEqual(new Set([...listed(first.html), ...listed(second.html)]), new Set(made));
    assert.deepEqual(listed((await viewer.get(`${PATH}/${id}?status=failed`)).html), new Set(made.slice(0, 2)));
    const none = await viewer.get(`${PATH}/${id}?status=succeeded`);
    assert.ok(textOf(none.html).includes('No deliveries match this filter.'), textOf(none.html));
    assert.equal((await viewer.get(`${PATH}/${id}?status=lost`)).status, 422);
  });

  it('is found by event type, status code, time and email, and links to its email', async () => {
    const { id } = await make({ events: ['email.queued', 'email.bounced'] });
    const [to, other] = ['long.address.of.a.recipient+tag@subdomain.example.net', 'bob@example.net'];
    const email = await ours.sent({ to });
    await ours.sent({ to: other });
    await project(service.pool, 'bounced', [{ id: email, recipient: to, error: '550', bounce_reason: 'mailbox_full' }]);
    const { rows } = await service.pool.query<{ id: string; type: string }>(
      'SELECT id, type FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY created_at, id',
      [id],
    );
    const [queued, , bounced] = rows.map((row) => row.id);
    assert.equal(rows.at(-1)?.type, 'email.bounced');
    await recordResults({ id: queued ?? '', ...FAILED, statusCode: 503, status: 'pending', retryInMs: 60_000 });
    const found = async (query: string) => {
      const { status, html } = await viewer.get(`${PATH}/${id}?${query}`);
      assert.equal(status, 200, textOf(html));
      return [...html.matchAll(/deliveries\/(whd_\w+)"/g)].map((match) => match[1]);
    };
    assert.equal((await found('')).length, 3);
    assert.deepEqual(await found('type=email.bounced'), [bounced]);
    assert.deepEqual(await found('response=5xx'), [queued]);
    assert.deepEqual(await found('response=2xx'), []);
    assert.deepEqual(await found('response=none'), []);
    assert.deepEqual(await found(`message=${email}`), [bounced, queued]);
    assert.deepEqual(await found(`message=${email}&type=email.queued&status=pending`), [queued]);
    assert.deepEqual(await found('until=2020-01-01T00:00'), []);
    assert.equal((await found('since=2020-01-01T00:00')).length, 3);
    assert.equal((await viewer.get(`${PATH}/${id}?since=yesterday`)).status, 422);
    const list = await viewer.get(`${PATH}/${id}?type=email.bounced`);
    assert.ok(textOf(list.html).includes(to) && list.html.includes(`href="/dashboard/emails/${email}"`), 'its email');
    assert.match(textOf((await viewer.get(`${PATH}/${id}?response=5xx`)).html), /email\.queued pending 503 1 /);
    const one = await viewer.get(`${PATH}/${id}/deliveries/${bounced}`);
    assert.ok(one.html.includes(`<a href="/dashboard/emails/${email}">`), 'the delivery links to it too');
  });

  it('does not link to an email whose record was deleted', async () => {
    const { id } = await make({ events: ['email.queued', 'suppression.added'] });
    const emails = [await ours.sent(), await ours.sent(), await ours.sent({ to: 'gone@example.net' })];
    const [built, stored, suppressed] = emails;
    const bounce = {
      id: suppressed ?? '',
      recipient: 'gone@example.net',
      error: '550',
      bounce_reason: 'mailbox_not_found',
    } as const;
    await project(service.pool, 'bounced', [bounce]);
    const payload = { type: 'email.queued', data: { emailId: stored, from: 'a@example.com' } };
    await service.pool.query('UPDATE webhook_events SET payload = $2 WHERE message_id = $1', [
      stored,
      JSON.stringify(payload),
    ]);
    const { rows } = await service.pool.query<{ id: string; email: string }>(
      `SELECT delivery.id, coalesce(message_id, data->>'emailId') AS email
       FROM webhook_deliveries AS delivery JOIN webhook_events AS event ON event.id = event_id
       WHERE endpoint_id = $1 AND (event.type = 'suppression.added' OR message_id = ANY ($2))`,
      [id, [built, stored]],
    );
    assert.deepEqual(rows.map(({ email }) => email).toSorted(), emails.toSorted());
    const list = `${PATH}/${id}`;
    const pages = rows.map((row) => ({ path: `${list}/deliveries/${row.id}`, email: row.email }));
    const linkTo = (email: string) => `<a href="/dashboard/emails/${email}">`;
    const links = (html: string) => emails.filter((email) => html.includes(linkTo(email)));
    for (const { path, email } of pages) assert.deepEqual(links((await viewer.get(path)).html), [email]);
    assert.deepEqual(links((await viewer.get(list)).html), emails);

    await service.pool.query('DELETE FROM emails WHERE id = ANY ($1)', [[stored, built, suppressed]]);
    for (const { path, email } of pages) {
      const { status, html } = await viewer.get(path);
      assert.equal(status, 200);
      assert.ok(textOf(html).includes(email) && links(html).length === 0, 'only the payload has the id');
    }
    const { html } = await viewer.get(list);
    assert.ok(textOf(html).includes(built ?? '') && links(html).length === 0, 'the list has the id without a link');
  });

  it('of another endpoint is not found', async () => {
    const [one, other] = [await make(), await make()];
    const delivery = await test(one.id);
    assert.equal((await owner.get(`${PATH}/${other.id}/deliveries/${delivery}`)).status, 404);
    assert.equal((await owner.post(`${PATH}/${other.id}/deliveries/${delivery}/replay`)).status, 404);
  });
});

describe('a period', () => {
  it('is replayed by status, with the number of deliveries', async () => {
    const { id } = await make();
    const [one, two] = [await test(id), await test(id)];
    await recordResults({ id: one, ...FAILED }, { id: two, ...FAILED, status: 'succeeded' });
    const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 16);
    const failed = await member.change(`${PATH}/${id}/replay`, { since: day, status: 'failed' });
    assert.ok(textOf(failed.html).includes('One delivery was queued again.'), textOf(failed.html));
    assert.deepEqual([await statusOf(id, one), await statusOf(id, two)], ['pending', 'succeeded']);
    const before = await member.change(`${PATH}/${id}/replay`, {
      since: '2020-01-01T00:00:30',
      until: day,
      status: '',
    });
    assert.ok(textOf(before.html).includes('No deliveries match.'), textOf(before.html));
    const every = await member.change(`${PATH}/${id}/replay`, { since: day, until: '', status: '' });
    assert.ok(textOf(every.html).includes('2 deliveries were queued again.'), textOf(every.html));
    assert.equal(await statusOf(id, two), 'pending');
  });

  it("is entered in the user's time zone, as a filter and for a replay", async () => {
    const user = await signedIn(service, ours.id, 'member');
    await user.change('/dashboard/account/time-zone', { time_zone: 'Asia/Tokyo' });
    const { id } = await make();
    const delivery = await test(id);
    await service.pool.query(`UPDATE webhook_deliveries SET created_at = '2026-03-01T20:00:30Z' WHERE id = $1`, [
      delivery,
    ]);
    const isFound = async (query: string) => (await user.get(`${PATH}/${id}?${query}`)).html.includes(delivery);
    const [before, after] = ['2026-03-02T05:00', '2026-03-02T05:01'];
    assert.ok(await isFound(`since=${before}&until=${after}`));
    assert.ok(!(await isFound(`since=${after}`)) && !(await isFound(`until=${before}`)));
    for (const path of [`${PATH}/${id}`, `${PATH}/${id}/replay`]) {
      assert.match(textOf((await user.get(path)).html), /From \(Asia\/Tokyo\) To \(Asia\/Tokyo\)/, path);
    }
    const replayed = await user.change(`${PATH}/${id}/replay`, { since: before, until: after, status: '' });
    assert.ok(textOf(replayed.html).includes('One delivery was queued again.'), textOf(replayed.html));
  });

  it('for a replay is read in the time zone in which its form was shown', async () => {
    const user = await signedIn(service, ours.id, 'member');
    const { id } = await make();
    const form = await user.get(`${PATH}/${id}/replay`);
    const [, zone = ''] = /name="time_zone" value="([^"]*)"/.exec(form.html) ?? [];
    assert.equal(zone, 'UTC');
    await user.change('/dashboard/account/time-zone', { time_zone: 'Asia/Kolkata' });
    const since = '2026-02-03T00:00';
    const refused = await user.post(`${PATH}/${id}/replay`, { since, until: 'tomorrow', time_zone: zone });
    assert.match(textOf(refused.html), /From \(UTC\) To \(UTC\)/);
    await user.change(`${PATH}/${id}/replay`, { since, time_zone: zone });
    assert.equal((await latestAudit(service, 'webhooks.replay'))?.detail['since'], '2026-02-03T00:00:00.000Z');
  });

  it('that is not valid is refused at its field', async () => {
    const { id } = await make();
    for (const [fields, field, says] of [
      [{ since: '' }, 'since', 'Please fill this in'],
      [{ since: '2026-02-03T00:00Z' }, 'since', 'is not a day and time'],
      [{ since: '2026-02-03T00:00', until: '2026-02-02T00:00' }, 'until', 'must not be before since'],
    ] as const) {
      const { status, html } = await member.post(`${PATH}/${id}/replay`, fields);
      assert.equal(status, 422, JSON.stringify(fields));
      assert.match(html, new RegExp(`id="field-${field}-problem"[^>]*>${says}`));
    }
  });
});
