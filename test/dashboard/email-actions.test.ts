import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findContent } from '../../src/store/emails/message-details.ts';
import { inFuture, useService } from '../http/service.ts';
import { latestAudit, type Page, signedIn, textOf } from './visitor.ts';

const service = await useService();
const ours = await service.organization('Ours');
const member = await signedIn(service, ours.id, 'member');

const page = async (path: string): Promise<Page> => {
  const shown = await member.get(path);
  assert.equal(shown.status, 200, textOf(shown.html));
  return shown;
};
describe('the page of an email', () => {
  it('has a title although its subject is white space', async () => {
    const id = await ours.sent({ subject: '  ' });
    for (const path of [`/dashboard/emails/${id}`, '/dashboard/emails']) {
      assert.ok(textOf((await page(path)).html).includes('(no subject)'), path);
    }
  });

  it('states whether the first attempt is still to come', async () => {
    const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
    const path = `/dashboard/emails/${id}`;
    assert.ok(textOf((await page(path)).html).includes('Not sent yet.'));
    await member.change(`${path}/cancel`);
    const canceled = textOf((await page(path)).html);
    assert.ok(canceled.includes('No attempt was made.') && !canceled.includes('Not sent yet.'), canceled);
  });
});

describe('the search for emails', () => {
  it('finds words of a subject that contains an @', async () => {
    const id = await ours.sent({ subject: '[GitHub] @ada mentioned you' });
    const found = await page(`/dashboard/emails?q=${encodeURIComponent('[GitHub] @ada mentioned you')}`);
    assert.ok(found.html.includes(`/dashboard/emails/${id}`));
    assert.equal((await member.get('/dashboard/emails?q=a%20b%40%40')).status, 200);
    assert.equal((await member.get('/dashboard/emails?q=ada%40')).status, 422);
  });
});

describe('changing an email', () => {
  it('reschedules it to a time in the given time zone', async () => {
    const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
    const time = new Date(Math.ceil(Date.now() / 60_000 + 120) * 60_000);
    // India has had one offset since 1945.
    const local = new Date(time.getTime() + 330 * 60_000).toISOString().slice(0, 16);
    const fields = { scheduled_at: local, time_zone: ' Asia/Kolkata ' };
    const shown = await member.change(`/dashboard/emails/${id}/reschedule`, fields);
    assert.match(textOf(shown.html), /Rescheduled to \w+ \d+, \d{4}, \d+:\d\d [AP]M \(Asia\/(?:Kolkata|Calcutta)\)\./);
    assert.match(textOf(shown.html), /Rescheduled [\d :-]+ UTC .* From [\d :-]+ UTC to [\d :-]+ UTC/);
    assert.equal((await ours.email(id))['scheduled_at'], time.toISOString());
    assert.deepEqual(await latestAudit(service, 'emails.reschedule'), {
      target: id,
      detail: { scheduled_at: time.toISOString() },
    });
  });

  it('shows why a time is refused and keeps the input', async () => {
    const id = await ours.sent({ scheduled_at: inFuture({ ms: 60_000 }), html: '<p>Hi.</p>', text: 'Hi.' });
    const before = (await ours.email(id))['scheduled_at'];
    for (const [scheduled, zone, field, problem] of [
      ['2020-01-01T00:00', 'UTC', 'scheduled_at', 'must be in the future'],
      [inFuture({ days: 40 }).slice(0, 16), 'UTC', 'scheduled_at', 'must be at most 30 days ahead'],
      ['tomorrow', 'UTC', 'scheduled_at', 'is not a day and time'],
      [inFuture({ hours: 3 }).slice(0, 16), 'Berlin', 'time_zone', 'is not a time zone'],
    ] as const) {
      const { status, html } = await member.post(`/dashboard/emails/${id}/reschedule`, {
        scheduled_at: scheduled,
        time_zone: zone,
      });
      assert.equal(status, 422);
      assert.match(html, new RegExp(`id="field-${field}-problem"[^>]*>${problem}`));
      assert.ok(html.includes(`value="${scheduled}"`) && html.includes(`value="${zone}"`), 'it stays');
      const links = [...html.matchAll(/ (?:href|hx-get)="([^"]*show=[^"]*|[^"]*em_\w+)"/g)].map(([, path]) =>
        String(path),
      );
      assert.ok(links.some((path) => path.includes('show=text')));
      for (const path of links) await page(path.replace('&amp;', '&'));
    }
    assert.equal((await ours.email(id))['scheduled_at'], before);
  });

  it('shows that it was not rescheduled because it is no longer scheduled', async () => {
    const number = '+12025550142';
    const json = { number, provider: 'twilio', auth_token: 'token' };
    await ours.call('POST', '/v1/chatapp/numbers', { json });
    await ours.addSender('+12025550143');
    const message = { to: '+14165550123', text: 'Hi.', scheduled_at: inFuture({ hours: 1 }) };
    for (const [path, body] of [
      ['emails', ours.mail({ scheduled_at: inFuture({ hours: 1 }) })],
      ['chatapp', { ...message, from: number }],
      ['sms', message],
    ] as const) {
      const { id } = (await ours.call('POST', `/v1/${path}`, { json: body })).body as { id: string };
      const canceled = await ours.call('POST', `/v1/${path}/${id}/cancel`);
      assert.equal(canceled.status, 200, canceled.text);
      for (const scheduled_at of [inFuture({ hours: 2 }).slice(0, 16), 'tomorrow']) {
        const fields = { scheduled_at, time_zone: 'UTC' };
        const { status, html } = await member.post(`/dashboard/${path}/${id}/reschedule`, fields);
        assert.equal(status, 422);
        assert.match(html, /role="alert"[^>]*>It is no longer scheduled, so it was not rescheduled\./, path);
      }
      assert.ok(!(await page(`/dashboard/${path}/${id}`)).html.includes('no longer scheduled'));
    }
  });

  it('cancels it while it is scheduled', async () => {
    const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
    assert.ok((await page(`/dashboard/emails/${id}`)).html.includes(`/dashboard/emails/${id}/cancel`));
    const shown = await member.change(`/dashboard/emails/${id}/cancel`);
    assert.ok(textOf(shown.html).includes('Email canceled.'), textOf(shown.html));
    assert.equal((await ours.email(id))['status'], 'canceled');
    assert.equal((await latestAudit(service, 'emails.cancel'))?.target, id);
    assert.ok(!shown.html.includes(`/dashboard/emails/${id}/cancel`), 'once');
    const again = await member.post(`/dashboard/emails/${id}/cancel`);
    assert.equal(again.status, 422);
    assert.ok(
      textOf(again.html).includes('Only an email that is still scheduled can be moved or canceled; this one is '),
      textOf(again.html),
    );
  });

  it('sends its content again, with its files, as a new email', async () => {
    const fields = {
      subject: 'Again',
      to: ['Ada <ada@example.net>'],
      cc: ['carol@example.net'],
      reply_to: ['help@example.org'],
      html: '<p>Hi</p>',
      text: 'Hi',
      tags: [{ name: 'kind', value: 'receipt' }],
      headers: { 'X-Order': '17' },
    };
    const attachments = [{ filename: 'a.txt', content: Buffer.from('file').toString('base64'), content_id: 'a@b' }];
    const id = await ours.sent({ ...fields, attachments, scheduled_at: inFuture({ hours: 1 }) });
    await member.change(`/dashboard/emails/${id}/cancel`);
    const path = `/dashboard/emails/${id}/again`;
    const { html } = await page(`/dashboard/emails/${id}`);
    const [, requestId = ''] = /name="request_id" value="([^"]+)"/.exec(html) ?? [];
    const { location = '' } = await member.post(path, { request_id: requestId });
    assert.equal((await member.post(path, { request_id: requestId })).status, 409, 'a second click');
    const made = /\/dashboard\/emails\/(em_\w+)$/.exec(location)?.[1] ?? '';
    assert.notEqual(made, id);
    const [old, copy] = [await ours.email(id), await ours.email(made)];
    for (const name of ['from', 'to', 'cc', 'bcc', 'reply_to', 'subject', 'marketing', 'tags', 'headers']) {
      assert.deepEqual(copy[name], old[name], name);
    }
    assert.deepEqual([copy['status'], copy['scheduled_at']], ['queued', null], 'immediately');
    const content = await findContent(service.pool, service.deps.contents, ours.id, made);
    assert.deepEqual([content?.html, content?.text], ['<p>Hi</p>', 'Hi']);
    const [file] = copy['attachments'] as { id: string; filename: string; content_id: string }[];
    assert.deepEqual([file?.filename, file?.content_id], ['a.txt', 'a@b']);
    assert.notEqual(file?.id, (old['attachments'] as { id: string }[])[0]?.id, 'the file is copied');
    assert.deepEqual(await latestAudit(service, 'emails.send'), { target: made, detail: { resend_of: id } });
    const [original, repeated] = [await page(`/dashboard/emails/${id}`), await page(`/dashboard/emails/${made}`)];
    assert.ok(original.html.includes(`Resent as</dt><dd><a href="/dashboard/emails/${made}"`), textOf(original.html));
    assert.ok(repeated.html.includes(`Resend of</dt><dd><a href="/dashboard/emails/${id}"`), textOf(repeated.html));
  });

  it('does not send again if content or attachments were deleted', async () => {
    const attachments = [{ filename: 'a.txt', content: 'aGk=' }];
    const [withFile, without] = [await ours.sent({ attachments }), await ours.sent()];
    await service.pool.query('UPDATE attachments SET deleted_at = now() WHERE email_id = $1', [withFile]);
    await service.pool.query('DELETE FROM email_bodies WHERE email_id = $1', [without]);
    for (const [id, gone] of [
      [withFile, 'An attachment'],
      [without, 'The content'],
    ] as const) {
      const { status, html } = await member.post(`/dashboard/emails/${id}/again`, { request_id: id });
      assert.equal(status, 409);
      assert.ok(textOf(html).includes(`${gone} of this email is no longer stored`), textOf(html));
      const shown = await page(`/dashboard/emails/${id}`);
      assert.ok(!shown.html.includes(`/dashboard/emails/${id}/again`), 'it is not offered');
      assert.ok(textOf(shown.html).includes('is no longer stored, so it cannot be resent.'), textOf(shown.html));
    }
    const shown = await page(`/dashboard/emails/${without}`);
    assert.ok(
      textOf(shown.html).includes('The content was erased, by request or because its retention ended.'),
      textOf(shown.html),
    );
  });
});
