import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { request } from 'undici';
import { cursorToText } from '../../src/dashboard/cursors.ts';
import { project } from '../../src/projection/emails.ts';
import { beginAttempts, endAttempts } from '../../src/store/emails/attempts.ts';
import { recordSuppressed } from '../../src/store/emails/recipients.ts';
import { inFuture, type Organization, useService } from '../http/service.ts';
import { latestAudit, type Page, signedIn, textOf, type Visitor } from './visitor.ts';

const service = await useService({ temporalUi: { url: 'https://temporal.example.com', namespace: 'mail' } });
const ours = await service.organization('Ours');
const member: Visitor = await signedIn(service, ours.id, 'member');

const polls = ({ html }: Page) => html.includes('hx-trigger="every 3s"');
const subjects = ({ html }: Page) =>
  [...html.matchAll(/<a href="\/dashboard\/emails\/em_\w+" id="[^"]+" title="[^"]*">([^<]*)<\/a>/g)].map(
    (match) => match[1],
  );
const page = async (path: string, by = member): Promise<Page> => {
  const shown = await by.get(path);
  assert.equal(shown.status, 200, textOf(shown.html));
  return shown;
};

describe('the list of emails', () => {
  let own: Organization;
  let reader: Visitor;
  let batch: string;
  before(async () => {
    own = await service.organization();
    reader = await signedIn(service, own.id, 'viewer');
    const tags = (...texts: string[]) =>
      texts.map((text) => ({ name: text.split(':')[0] ?? '', value: text.split(':')[1] ?? '' }));
    await own.sent({ subject: 'one', tags: tags('kind:receipt', 'plan:pro') });
    await own.sent({ subject: 'two', tags: tags('kind:receipt') });
    await own.sent({ subject: 'three', scheduled_at: inFuture({ hours: 1 }), tags: tags('kind:receipt', 'plan:pro') });
    const answer = await own.call('POST', '/v1/emails/batch', {
      json: { emails: [own.mail({ subject: 'four', tags: tags('kind:receipt', 'plan:pro') })] },
    });
    batch = (answer.body as { id: string }).id;
  });

  it('shows the emails of this organization, latest first, with all filters together', async () => {
    await ours.sent({ subject: 'of another organization' });
    const found = async (query: string) => subjects(await page(`/dashboard/emails${query}`, reader));
    assert.deepEqual(await found(''), ['four', 'three', 'two', 'one']);
    assert.deepEqual(await found('?status=scheduled'), ['three']);
    assert.deepEqual(await found('?tag=kind:receipt&tag=plan:pro'), ['four', 'three', 'one']);
    assert.deepEqual(await found('?tag=kind%3Areceipt+plan%3Apro'), ['four', 'three', 'one'], 'in one field');
    assert.deepEqual(await found(`?status=queued&tag=plan:pro&batch_id=${batch}`), ['four']);
    assert.deepEqual(await found(`?status=&tag=&batch_id=`), ['four', 'three', 'two', 'one'], 'fields left empty');
    assert.deepEqual(await found('?tag=kind:other'), []);
    const kept = await page(`/dashboard/emails?status=queued&tag=plan:pro&tag=kind:receipt`, reader);
    assert.match(kept.html, /name="status" value="queued" checked/);
    assert.ok(kept.html.includes('value="plan:pro kind:receipt"'), 'tags stand in their field');
  });

  it('shows an invalid filter at its field and lists nothing', async () => {
    for (const [query, field] of [
      ['tag=x', 'tag'],
      ['q=a%40b%40c', 'q'],
      ['q=%21', 'q'],
      ['from=acme', 'from'],
      ['created_after=yesterday', 'created_after'],
      ['created_after=0026-01-01', 'created_after'],
      ['status=other', 'status'],
      [`tag=${Array.from({ length: 11 }, (_, i) => `a:${i}`).join('+')}`, 'tag'],
    ]) {
      const { status, html } = await reader.get(`/dashboard/emails?${query}`);
      assert.equal(status, 422, query);
      assert.ok(html.includes(`id="field-${field}-problem"`), query);
      assert.ok(!html.includes('>four<'), 'nothing is listed');
    }
    assert.equal((await reader.get('/dashboard/emails?cursor=x')).status, 422);
  });

  it('finds emails by an address, a domain and words in one field', async () => {
    const org = await service.organization();
    const visitor = await signedIn(service, org.id, 'viewer');
    await org.sent({ subject: 'Receipt for June', to: 'ada@example.net' });
    await org.sent({ subject: 'Receipt for July', to: 'bea@example.org', cc: 'ada@example.net' });
    const found = async (query: string) => subjects(await page(`/dashboard/emails?${query}`, visitor));
    const [june, july] = ['Receipt for June', 'Receipt for July'];
    assert.deepEqual(await found('q=Ada%40example.net'), [july, june]);
    assert.deepEqual(await found('q=%40example.org'), [july]);
    assert.deepEqual(await found('q=june+receipt'), [june]);
    assert.deepEqual(await found('q=receipt&status=queued&status=sent'), [july, june]);
    assert.deepEqual(await found('q=receipt&status=bounced&bounce_reason=mailbox_full'), []);
    assert.deepEqual(await found('q=receipt&created_after=2020-01-01&created_before=2999-01-01'), [july, june]);
    assert.deepEqual(await found('created_before=2020-01-01'), []);
    assert.deepEqual(await found('created_after=2999-01-01T10:00:00Z'), []);
    assert.deepEqual(await found('from=%40other.example'), []);
    const { html } = await page('/dashboard/emails?q=receipt&status=queued&created_after=2020-01-01', visitor);
    for (const part of ['value="receipt"', 'value="queued" checked', 'type="date" value="2020-01-01"']) {
      assert.ok(html.includes(part), part);
    }
  });

  it("filters by days in the user's time zone, or in the browser's", async () => {
    const org = await service.organization();
    const user = await signedIn(service, org.id, 'viewer');
    const id = await org.sent({ subject: 'At night' });
    await service.pool.query(`UPDATE emails SET created_at = '2026-03-01T20:00Z' WHERE id = $1`, [id]);
    const first = 'created_after=2026-03-01&created_before=2026-03-02';
    const second = 'created_after=2026-03-02&created_before=2026-03-03';
    const check = async (zone: string, listed: string, empty: string, cookie = '') => {
      const headers = { cookie: `${user.cookie()}; ${cookie}` };
      const shown = await user.get(`/dashboard/emails?${listed}`, headers);
      assert.deepEqual(subjects(shown), ['At night'], zone);
      assert.ok(
        textOf(shown.html).includes(`Since (${zone})`) && textOf(shown.html).includes(`Before (${zone})`),
        zone,
      );
      assert.deepEqual(subjects(await user.get(`/dashboard/emails?${empty}`, headers)), [], zone);
    };
    await check('UTC', first, second);
    await check('Asia/Tokyo', second, first, 'sendwright-time-zone=Asia/Tokyo');
    await check('UTC', first, second, 'sendwright-time-zone=Nowhere/"><b>');
    await user.change('/dashboard/account/time-zone', { time_zone: 'Europe/Berlin' });
    await check('Europe/Berlin', first, second, 'sendwright-time-zone=Asia/Tokyo');
  });

  it('leads from an id in the search field to its page, of this organization only', async () => {
    const id = await own.sent({ subject: 'five' });
    for (const [searched, to] of [
      [id, `/dashboard/emails/${id}`],
      [batch, `/dashboard/batches/${batch}`],
    ] as const) {
      const { status, location } = await reader.get(`/dashboard/emails?q=${searched}`);
      assert.deepEqual([status, location], [303, to]);
    }
    assert.deepEqual(subjects(await page(`/dashboard/emails?q=${id}`, member)), []);
  });

  it('is downloaded as CSV with its filters, without formulas', async () => {
    const org = await service.organization();
    const visitor = await signedIn(service, org.id, 'viewer');
    const id = await org.sent({ subject: '=1+1', to: ['ada@example.net', 'bea@example.net'] });
    await org.sent({ subject: 'other', to: 'cy@example.org' });
    const { html } = await page('/dashboard/emails?q=ada%40example.net&status=queued', visitor);
    const [, link = ''] = /href="(\/dashboard\/emails\/download[^"]*)"/.exec(html) ?? [];
    const { status, headers, html: csv } = await visitor.get(link.replaceAll('&amp;', '&'));
    assert.equal(status, 200);
    assert.match(String(headers['content-disposition']), /^attachment; filename="emails-\d{4}-\d\d-\d\d\.csv"$/);
    const [heading, row, ...rest] = csv.split('\r\n');
    assert.match(heading ?? '', /^id,created_at,status,/);
    assert.ok(row?.startsWith(`${id},`) && row.includes(`"ada@example.net, bea@example.net",'=1+1,`), row);
    assert.deepEqual(rest, ['']);
    assert.equal(
      (await latestAudit(service, 'emails.export'))?.detail['filters'],
      '?q=ada%40example.net&status=queued',
    );
    assert.equal((await visitor.get('/dashboard/emails/download?q=%21')).status, 422);
  });

  it('is downloaded to its end, also of a batch', async () => {
    const org = await service.organization();
    const visitor = await signedIn(service, org.id, 'viewer');
    const emails = Array.from({ length: 501 }, (_, n) => org.mail({ subject: `number ${n}` }));
    const { body } = await org.call('POST', '/v1/emails/batch', { json: { emails } });
    const { id } = body as { id: string };
    await org.sent({ subject: 'alone' });
    const { html } = await page(`/dashboard/batches/${id}`, visitor);
    const [, link = ''] = /href="(\/dashboard\/emails\/download[^"]*)"/.exec(html) ?? [];
    const { html: csv } = await visitor.get(link);
    assert.equal(csv.trimEnd().split('\r\n').length, 502);
    assert.ok(!csv.includes('alone'));
  });

  it('refreshes its first page, and others while a visible email may change soon', async () => {
    const { id: orgId, sent } = await service.organization();
    const visitor = await signedIn(service, orgId, 'viewer');
    assert.ok(polls(await page('/dashboard/emails', visitor)), 'the first email is awaited');
    const [now, later] = [await sent(), await sent({ scheduled_at: inFuture({ hours: 5 }) })];
    assert.ok(polls(await page('/dashboard/emails', visitor)), 'one is queued');
    const newest = cursorToText({ created_at: '2999-01-01T00:00:00.000Z', id: 'em_0' });
    const deep = (query = '') => page(`/dashboard/emails?cursor=${newest}${query}`, visitor);
    assert.ok(polls(await deep()), 'one is queued');
    assert.ok(!polls(await deep('&status=scheduled')), 'one is due in five hours');
    await project(service.pool, 'sent', [{ id: now }]);
    assert.ok(polls(await deep()), 'one was sent recently');
    await service.pool.query(`UPDATE emails SET last_event_at = last_event_at - interval '11 minutes'`);
    assert.ok(!polls(await deep()), 'no report has come for 11 minutes');
    await project(service.pool, 'delivered', [{ id: now }]);
    assert.ok(!polls(await deep()), 'it was delivered');
    assert.ok(polls(await page('/dashboard/emails', visitor)), 'a new email may come');
    await service.pool.query(`UPDATE emails SET scheduled_at = now() + interval '1 minute' WHERE id = $1`, [later]);
    assert.ok(polls(await page(`/dashboard/emails/${later}`, visitor)), 'it is due soon');
    assert.ok(!polls(await page(`/dashboard/emails/${now}`, visitor)), 'of one');
  });

  it('can be searched from the head of every page', async () => {
    const { html } = await page('/dashboard/domains', reader);
    assert.match(
      html,
      /<form method="get" action="\/dashboard\/emails" class="search"[^>]*><input type="search" id="search" name="q"/,
    );
  });
});

describe('one email', () => {
  it('shows fields, timeline, recipients, attempts and workflow', async () => {
    const id = await ours.sent({
      subject: 'Receipt <b>1</b>',
      to: ['Ada <Ada@example.net>', 'bob@example.net'],
      cc: ['carol@example.net'],
      bcc: ['dan@example.net'],
      reply_to: 'help@example.org',
      tags: [{ name: 'kind', value: 'receipt' }],
      headers: { 'X-Order': '17' },
    });
    await recordSuppressed(service.pool, [{ email_id: id, recipient: 'dan@example.net' }]);
    await beginAttempts(service.pool, [
      { message_id: id, n: 1, call: 'call_1', provider: 'postmark' },
      { message_id: id, n: 2, call: 'call_2', provider: 'smtp' },
    ]);
    await endAttempts(service.pool, [{ message_id: id, n: 1, outcome: 'again', detail: '503 <busy>' }]);
    await project(service.pool, 'sent', [{ id, provider: 'smtp', provider_message_id: 'pm-1' }]);
    await project(service.pool, 'bounced', [
      { id, recipient: 'ada@example.net', error: '550 nobody here', bounce_reason: 'mailbox_not_found' },
    ]);
    await service.pool.query(`UPDATE emails SET workflow_id = 'grp_1' WHERE id = $1`, [id]);

    const { html } = await page(`/dashboard/emails/${id}`);
    const text = textOf(html);
    assert.ok(!html.includes('<b>') && !html.includes('<busy>'), 'all text is escaped');
    for (const part of [
      'Receipt <b>1</b>',
      'Ada <Ada@example.net>, bob@example.net',
      'help@example.org',
      'Custom headers X-Order 17',
      'pm-1',
      'mailbox not found means: no account with that address. What to do: correct the address, or remove it from your data. 550 nobody here',
      'Ada@example.net bounced mailbox not found: see the response above',
      'bob@example.net sent',
      'dan@example.net suppressed',
      '1 postmark',
      'temporary failure, retrying 503 <busy>',
      'in progress, or its end was not recorded',
    ]) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
    assert.match(
      text,
      /Timeline Queued [\d :-]+ UTC Sent [\d :-]+ UTC · after \d+ ms Bounced ada@example\.net [\d :-]+ UTC · after \d+ ms mailbox not found: see the response above/,
    );
    assert.ok(html.includes('href="https://temporal.example.com/namespaces/mail/workflows/grp_1"'), 'its workflow');
    assert.ok(html.includes('href="/dashboard/emails?tag=kind%3Areceipt"'), 'other emails of its tag');
  });

  it('shows an open of a machine as automatic, and one of a person not', async () => {
    const id = await ours.sent();
    await project(service.pool, 'sent', [{ id }]);
    const count = async () =>
      textOf((await page(`/dashboard/emails/${id}`)).html).match(/opened \(automatic\)/gi)?.length;
    await project(service.pool, 'opened', [{ id }]);
    assert.equal(await count(), undefined);
    await project(service.pool, 'opened_by_machine', [{ id }]);
    assert.equal(await count(), 1);
  });

  it('attributes an open or click without a recipient to none of several', async () => {
    const id = await ours.sent({ to: ['ada@example.net', 'bob@example.net'] });
    for (const change of ['sent', 'opened', 'clicked'] as const) {
      await project(service.pool, change, [{ id }]);
      const text = textOf((await page(`/dashboard/emails/${id}`)).html);
      for (const name of ['ada', 'bob']) assert.ok(text.includes(`${name}@example.net sent`), `${change}: ${text}`);
    }
  });

  it('shows the link of a click, and a long timeline by its ends', async () => {
    const id = await ours.sent();
    await project(service.pool, 'clicked', [{ id, recipient: 'ada@example.net', link: 'https://x.example/?a=<b>' }]);
    assert.ok(textOf((await page(`/dashboard/emails/${id}`)).html).includes('https://x.example/?a=<b>'), 'the link');
    await service.pool.query(
      `INSERT INTO email_events (email_id, id, type, created_at, dedupe_key)
       SELECT $1, 'evt_' || n, 'email.opened', now() + n * interval '1 second', n::text FROM generate_series(1, 500) AS n`,
      [id],
    );
    const long = textOf((await page(`/dashboard/emails/${id}`)).html);
    assert.ok(long.includes('302 more events'), long.slice(0, 500));
    assert.equal(long.split('Opened').length - 1, 198);
  });

  it('states that the last attempt of a failed email gave up', async () => {
    const id = await ours.sent();
    const attempts = [1, 2].map((n) => ({ message_id: id, n }));
    await beginAttempts(
      service.pool,
      attempts.map((each) => ({ ...each, call: `call_${each.n}`, provider: 'smtp' })),
    );
    await endAttempts(
      service.pool,
      attempts.map((each) => ({ ...each, outcome: 'again', detail: '500' })),
    );
    await project(service.pool, 'failed', [{ id, error: 'Given up after 2 attempts.' }]);
    const text = textOf((await page(`/dashboard/emails/${id}`)).html);
    assert.match(text, /temporary failure, retrying 500 .* temporary failure, gave up 500/);
    assert.equal(text.split('retrying').length - 1, 1);
  });

  it('does not promise further checks of the last attempt of a failed email', async () => {
    const id = await ours.sent();
    const attempt = { message_id: id, n: 1 };
    await beginAttempts(service.pool, [{ ...attempt, call: 'call_only', provider: 'postmark' }]);
    await endAttempts(service.pool, [{ ...attempt, outcome: 'unknown', detail: '500' }]);
    const outcome = async () =>
      /no clear answer, [a-z ]+/.exec(textOf((await page(`/dashboard/emails/${id}`)).html))?.[0];
    assert.equal(await outcome(), 'no clear answer, checking ');
    await project(service.pool, 'failed', [{ id, error: 'Given up after 1 attempt.' }]);
    assert.equal(await outcome(), 'no clear answer, gave up ');
  });

  it('explains a bounce and links to the suppression that it caused, which members can remove', async () => {
    const to = 'ada.bounced@example.net';
    const id = await ours.sent({ to });
    await project(service.pool, 'bounced', [
      { id, recipient: to, error: '550 5.1.1 nobody here', bounce_reason: 'mailbox_not_found' },
    ]);
    const { html } = await page(`/dashboard/emails/${id}`);
    const text = textOf(html);
    assert.ok(text.includes('mailbox not found means: no account with that address. What to do:'), text);
    assert.ok(text.includes(`${to} bounced mailbox not found: see the response above`), text);
    assert.match(text, /ada\.bounced@example\.net has been on your suppression list since .* because of this email\./);
    assert.ok(html.includes(`href="/dashboard/suppressions?email=${encodeURIComponent(to)}"`), 'view');
    const suppress = `href="/dashboard/suppressions/add?addresses=${encodeURIComponent(to)}"`;
    assert.ok(!html.includes(suppress), 'it is on the list already');
    const [, remove = ''] = /action="(\/dashboard\/suppressions\/sup_\w+\/remove)"/.exec(html) ?? [];
    const viewer = await signedIn(service, ours.id, 'viewer');
    assert.ok(!(await page(`/dashboard/emails/${id}`, viewer)).html.includes('/remove"'), 'not for viewers');

    const suppressed = await ours.sent({ to });
    await recordSuppressed(service.pool, [{ email_id: suppressed, recipient: to }]);
    await project(service.pool, 'suppressed', [{ id: suppressed }]);
    const why = await page(`/dashboard/emails/${suppressed}`);
    assert.ok(textOf(why.html).includes('every address in To was on your suppression list'), textOf(why.html));
    assert.ok(why.html.includes(`href="/dashboard/emails/${id}"`), 'the email that caused it');
    await member.change(remove);
    const later = (await page(`/dashboard/emails/${suppressed}`)).html;
    assert.ok(textOf(later).includes('None of the recipients is on the list now'), textOf(later));
    assert.ok(later.includes(suppress), 'it can be put on the list again');
  });

  it('states an unsubscription with marketing email only, which alone it stops', async () => {
    const to = 'ada.unsubscribed@example.net';
    await service.pool.query(
      `INSERT INTO suppressions (id, org_id, email, origin) VALUES ('sup_unsubscribed', $1, $2, 'unsubscribe')`,
      [ours.id, to],
    );
    const pageOf = async (fields: Parameters<typeof ours.sent>[0]) =>
      textOf((await page(`/dashboard/emails/${await ours.sent(fields)}`)).html);
    const marketing = await pageOf({ to, marketing: true, text: '{{{unsubscribe_url}}}' });
    assert.match(marketing, /on your suppression list .* because the recipient unsubscribed from marketing email/);
    assert.doesNotMatch(await pageOf({ to }), /suppression list/);
  });

  it('shows its HTML in a sandboxed frame that other sites cannot embed', async () => {
    const evil = '<p>Hi<script>parent.alert(1)</script><form action="https://evil.example"></form></p>';
    const id = await ours.sent({ html: evil, text: 'Plain & <simple>' });
    const shown = await page(`/dashboard/emails/${id}`);
    assert.match(shown.html, new RegExp(`<iframe[^>]* src="/dashboard/emails/${id}/html"[^>]* sandbox`));
    assert.ok(!shown.html.includes('parent.alert'), 'the page does not contain it');
    assert.doesNotMatch(shown.html, /sandbox="[^"]*allow/);
    const frame = await page(`/dashboard/emails/${id}/html`);
    assert.equal(frame.html, evil);
    const policy = String(frame.headers['content-security-policy']);
    assert.ok(policy.startsWith("sandbox; default-src 'none';"), policy);
    assert.ok(policy.includes("frame-ancestors 'self'") && !/script-src|allow-/.test(policy), policy);
    assert.equal(frame.headers['x-frame-options'], 'SAMEORIGIN');
    assert.equal(frame.headers['cache-control'], 'no-store');

    const plain = await page(`/dashboard/emails/${id}?show=text`);
    assert.ok(plain.html.includes('Plain &amp; &lt;simple>'), plain.html);
    assert.ok(!plain.html.includes('<iframe'), 'only the text');
    const source = await page(`/dashboard/emails/${id}?show=source`);
    assert.ok(textOf(source.html).includes('<form action="https://evil.example">'), 'its source, escaped');
    assert.ok(!source.html.includes('<form action="https://evil'), 'not as HTML');
    const headers = textOf((await page(`/dashboard/emails/${id}?show=headers`)).html);
    assert.match(headers, new RegExp(`From: .*To: .*Subject: .*Message-ID: <${id}@`));
    assert.match((await page(`/dashboard/emails/${id}?width=375`)).html, /<iframe class="preview width-375"/);
    const only = await page(`/dashboard/emails/${await ours.sent({ text: 'Nothing else.' })}`);
    assert.ok(only.html.includes('Nothing else.') && !only.html.includes('<iframe'), 'text alone');
  });

  it('links to attachments by signed download links', async () => {
    const content = Buffer.from('a,b\n1,2\n');
    const id = await ours.sent({ attachments: [{ filename: 'über.csv', content: content.toString('base64') }] });
    const { html } = await page(`/dashboard/emails/${id}`);
    const link = /href="(\/v1\/emails\/[^"]+\/download\?[^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&');
    assert.ok(link !== undefined, textOf(html));
    const file = await request(service.url + link);
    assert.equal(file.statusCode, 200);
    assert.deepEqual(Buffer.from(await file.body.arrayBuffer()), content);
    await service.pool.query('UPDATE attachments SET deleted_at = now() WHERE email_id = $1', [id]);
    const gone = await page(`/dashboard/emails/${id}`);
    assert.ok(textOf(gone.html).includes('über.csv') && !gone.html.includes('/download?'), 'the name stays');
  });
});
