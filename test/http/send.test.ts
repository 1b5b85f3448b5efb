import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, inFuture, TIMESTAMP, useService } from './service.ts';
import { findContent } from '../../src/store/emails/message-details.ts';

const service = await useService();
const ours = await service.organization();

const domain = 'good-one.example';
await ours.addDomain(domain);
await ours.addDomain('bücher.example');
await ours.addDomain('pending.example', false);
const failed = await ours.addDomain('failed.example', false);
await service.pool.query(`UPDATE domains SET status = 'failed', next_check_at = NULL WHERE id = $1`, [failed]);
await (await service.organization()).addDomain('theirs.example');

describe('202 Accepted: {id, status, created_at, scheduled_at}', () => {
  it('holds exactly these for an immediate send', async () => {
    const { status, headers, body } = await ours.send();
    assert.equal(status, 202);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    const { id, created_at: createdAt, ...rest } = body as Record<string, string>;
    assert.deepEqual(rest, { status: 'queued', scheduled_at: null });
    assert.deepEqual(Object.keys(body as object), ['id', 'status', 'created_at', 'scheduled_at']);
    assert.match(String(id), /^em_[0-9a-z]{26}$/);
    assert.match(String(createdAt), TIMESTAMP);
    assert.ok(Math.abs(Date.parse(String(createdAt)) - Date.now()) < 60_000);
  });

  it('echoes the requested time for a scheduled send', async () => {
    const at = inFuture({ hours: 3 });
    const local = `${new Date(Date.parse(at) + 2 * 3_600_000).toISOString().slice(0, -1)}9+02:00`;
    for (const requested of [at, local]) {
      const { body } = await ours.send({ scheduled_at: requested });
      const { id, status, scheduled_at: scheduledAt } = body as { id: string; status: string; scheduled_at: string };
      assert.deepEqual({ status, scheduledAt }, { status: 'scheduled', scheduledAt: at });
      assert.equal((await ours.email(id))['scheduled_at'], at);
    }
  });
});

describe('an email is read back with the values of its request', () => {
  it('every field', async () => {
    const given = {
      from: ` "Ada, the \\"first\\"" <Ada.L+x@${ours.domain.toUpperCase()}> `,
      to: ['Grace <grace@example.net>', 'b@EXAMPLE.net', '<c@example.net>'],
      cc: ['日本 <d@bücher.example>'],
      bcc: ['e@example.net', 'e@example.net'],
      reply_to: ['f@example.net', ' g@example.net '],
      subject: ' Grüße, 山田 😀 ',
      html: '<p>Hi',
      text: 'Hi',
      marketing: true,
      tags: [
        { name: 'z', value: '1' },
        { value: '2', name: 'a' },
      ],
      headers: { 'X-z': ' 1 ', 'x-A': '', 'List-Unsubscribe': '<https://example.net/u>', constructor: 'x' },
      scheduled_at: inFuture({ days: 3 }),
    };
    const { html, text, ...shown } = given;
    const email = await ours.email(await ours.sent(given));
    const { id, created_at: createdAt, last_event_at: lastEventAt, events, ...rest } = email;
    assert.deepEqual(rest, {
      ...shown,
      batch_id: null,
      tags: [
        { name: 'z', value: '1' },
        { name: 'a', value: '2' },
      ],
      status: 'scheduled',
      error: null,
      bounce_reason: null,
      attachments: [],
    });
    assert.deepEqual(Object.keys(email['headers'] as object), Object.keys(given.headers));
    assert.deepEqual(events, [{ type: 'email.scheduled', created_at: createdAt }]);
    assert.equal(lastEventAt, createdAt);
    const content = await findContent(service.pool, service.deps.contents, ours.id, String(id));
    assert.deepEqual([content?.html, content?.text], [html, text]);
  });

  it('one address is an array of one', async () => {
    const one = 'Ada <ada@example.net>';
    const email = await ours.email(await ours.sent({ to: one, cc: one, bcc: one, reply_to: one }));
    const { to, cc, bcc, reply_to: replyTo } = email;
    assert.deepEqual({ to, cc, bcc, replyTo }, { to: [one], cc: [one], bcc: [one], replyTo: [one] });
  });

  it('null when not provided, [] means none', async () => {
    for (const fields of [{}, { reply_to: [], tags: [], headers: {}, cc: null, marketing: null }]) {
      const { cc, bcc, reply_to: replyTo, tags, headers, marketing } = await ours.email(await ours.sent(fields));
      assert.deepEqual(
        { cc, bcc, replyTo, tags, headers, marketing },
        { cc: null, bcc: null, replyTo: null, tags: [], headers: {}, marketing: false },
      );
    }
  });
});

describe("from's domain must equal a registered and verified domain exactly", () => {
  for (const from of [
    'a@good-one.example',
    'Name <a@good-one.example>',
    'a@GOOD-One.Example',
    'a@BÜCHER.example',
    'a@xn--bcher-kva.example',
    '"b@theirs.example" <a@good-one.example>',
  ]) {
    it(`202: ${from}`, async () => {
      const { status, text } = await ours.send({ from });
      assert.equal(status, 202, text);
    });
  }

  for (const [from, code] of [
    ['a@mail.good-one.example', 'domain_not_found'],
    ['a@agood-one.example', 'domain_not_found'],
    ['a@good-one.example.evil.example', 'domain_not_found'],
    ['a@good-0ne.example', 'domain_not_found'],
    ['a@gооd-one.example', 'domain_not_found'],
    ['a@good-one.example@theirs.example', undefined],
    ['a@theirs.example', 'domain_not_found'],
    ['"a@good-one.example" <a@theirs.example>', 'domain_not_found'],
    ['a@pending.example', 'domain_not_verified'],
    ['a@failed.example', 'domain_not_verified'],
  ] as const) {
    it(`${code ?? 'validation_error'}: ${from}`, async () => {
      const answer = await ours.send({ from });
      if (code) assertRefused(answer, 403, code, 'from', 'the domain ');
      if (code === 'domain_not_found') assert.match(answer.text, /; a subdomain is registered on its own/);
      if (!code) assertRefused(answer, 422, 'validation_error', 'from');
    });
  }
});

describe('a header name that JSON contains twice', () => {
  const HEADERS = '"headers": {"X-A": "1", "X-B": "{\\"X-A\\": \\"}", "X-A": "2"}';
  const post = (path: string, raw: string) =>
    ours.call('POST', path, { raw, headers: { 'content-type': 'application/json' } });
  /** The JSON of an email with these members added. */
  const email = (members: string, fields: Record<string, unknown> = {}) =>
    JSON.stringify(ours.mail(fields)).replace(/}$/, `, ${members}}`);

  // A long body is parsed by another parser, while it arrives.
  for (const [size, fields] of Object.entries({ short: {}, long: { html: 'a'.repeat(200_000) } })) {
    it(`is refused in a ${size} body, also escaped, and in a batch with its position`, async () => {
      for (const headers of [
        HEADERS,
        String.raw`"headers" : { "X-\u0041":"1" , "X-A" : "2" }`,
        String.raw`"he\u0061ders": { "X-A": "1", "X-A": "2" }`,
      ]) {
        const single = await post('/v1/emails', email(headers, fields));
        assertRefused(single, 422, 'validation_error', 'headers.X-A');
      }
      const emails = [email('"headers": {"X-A": "1"}', fields), email('"headers": {"X-A": "1"}'), email(HEADERS)];
      const batch = await post('/v1/emails/batch', `{"emails": [${emails.join()}]}`);
      assertRefused(batch, 422, 'validation_error', 'emails.2.headers.X-A');
    });
  }

  it('is accepted inside a text, and in other fields the last value counts', async () => {
    const text = { text: `{${HEADERS}}` };
    assert.equal((await post('/v1/emails', email('"headers": {"X-A": "1"}', text))).status, 202);
    const { status, body } = await post('/v1/emails', email('"subject": "First", "subject": "Last"'));
    assert.equal(status, 202);
    assert.equal((await ours.email((body as { id: string }).id))['subject'], 'Last');
  });
});
