import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertRefused, inFuture, TIMESTAMP, useService } from './service.ts';
import { findContent } from '../../src/store/emails/message-details.ts';

const service = await useService();
const ours = await service.organization();

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
    const { body } = await ours.send({ scheduled_at: at });
    const { status, scheduled_at: scheduledAt } = body as Record<string, unknown>;
    assert.deepEqual({ status, scheduledAt }, { status: 'scheduled', scheduledAt: at });
  });

  it('gives ids that sort by creation', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push(await ours.sent());
    assert.deepEqual(ids, [...ids].sort());
    assert.equal(new Set(ids).size, ids.length);
  });

  it('tells the relay, after the commit', async () => {
    const before = service.wakes();
    await ours.sent();
    await ours.send({ subject: '' });
    assert.equal(service.wakes(), before + 1);
  });
});

describe('scheduled_at takes any instant with an offset, and is stored and echoed in UTC with milliseconds', () => {
  const hour = new Date(Date.now() + 5 * 3_600_000).toISOString().slice(0, 14);
  const day = (offset: number) => new Date(Date.parse(`${hour}30:00Z`) + offset * 3_600_000).toISOString().slice(0, 14);
  for (const [given, echoed] of [
    [`${hour}30:00Z`, `${hour}30:00.000Z`],
    [`${hour}30Z`, `${hour}30:00.000Z`],
    [`${hour}30:07.1239Z`, `${hour}30:07.123Z`],
    [`${day(2)}30:00+02:00`, `${hour}30:00.000Z`],
    [`${day(-5)}30:00-05:00`, `${hour}30:00.000Z`],
    [`${day(2)}30:00+0200`, `${hour}30:00.000Z`],
    [`${day(14)}30:00.5+14`, `${hour}30:00.500Z`],
    [`${hour}30:00-00:00`, `${hour}30:00.000Z`],
    [`${hour}30:00z`, `${hour}30:00.000Z`],
  ] as const) {
    it(given.slice(11), async () => {
      const { body } = await ours.send({ scheduled_at: given });
      const { id, scheduled_at: scheduledAt } = body as { id: string; scheduled_at: string };
      assert.equal(scheduledAt, echoed);
      assert.equal((await ours.email(id))['scheduled_at'], echoed);
    });
  }
});

describe('what is read back is what was sent in', () => {
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

  it('bodies of a million characters', async () => {
    const html = '山'.repeat(1_000_000);
    const id = await ours.sent({ html });
    const content = await findContent(service.pool, service.deps.contents, ours.id, id);
    assert.ok(content?.html === html);
  });

  it('hostile text', async () => {
    for (const text of ["' OR 1=1 --", '\\u0000', '${x}', '%s', '{{7*7}}', '$1', '\\', '"', '\u200B😀', '[]', '{}']) {
      const email = await ours.email(await ours.sent({ subject: text, headers: { 'X-A': text } }));
      assert.deepEqual([email['subject'], email['headers']], [text, { 'X-A': text }]);
    }
  });
});

describe("from's domain must equal a registered and verified domain exactly", () => {
  let domain: string;
  before(async () => {
    domain = 'good-one.example';
    await ours.addDomain(domain);
    await ours.addDomain('bücher.example');
    await ours.addDomain('pending.example', false);
    const failed = await ours.addDomain('failed.example', false);
    await service.pool.query(`UPDATE domains SET status = 'failed', next_check_at = NULL WHERE id = $1`, [failed]);
    await (await service.organization()).addDomain('theirs.example');
  });

  for (const from of [
    'a@good-one.example',
    'Name <a@good-one.example>',
    'a@GOOD-One.Example',
    'a@ｇｏｏｄ-one.example',
    'a@bücher.example',
    'a@BÜCHER.example',
    'a@xn--bcher-kva.example',
    'a@XN--BCHER-KVA.example',
    '"b@theirs.example" <a@good-one.example>',
  ]) {
    it(`202: ${from}`, async () => {
      const { status, text } = await ours.send({ from });
      assert.equal(status, 202, text);
    });
  }

  for (const [from, code] of [
    ['a@mail.good-one.example', 'domain_not_found'],
    ['a@example', undefined],
    ['a@one.example', 'domain_not_found'],
    ['a@agood-one.example', 'domain_not_found'],
    ['a@good-one.example.evil.example', 'domain_not_found'],
    ['a@good-one.exampl', 'domain_not_found'],
    ['a@good-0ne.example', 'domain_not_found'],
    ['a@gооd-one.example', 'domain_not_found'],
    ['a@bucher.example', 'domain_not_found'],
    ['a@good-one.example.', undefined],
    ['a@good%2Done.example', undefined],
    ['a@good_one.example', undefined],
    ['a@good-one.example@theirs.example', undefined],
    ['a@theirs.example', 'domain_not_found'],
    ['"a@good-one.example" <a@theirs.example>', 'domain_not_found'],
    ['a@pending.example', 'domain_not_verified'],
    ['a@failed.example', 'domain_not_verified'],
  ] as const) {
    it(`${code ?? 'validation_error'}: ${from}`, async () => {
      const answer = await ours.send({ from });
      if (code) assertRefused(answer, 403, code, 'from', 'the domain ');
      else assertRefused(answer, 422, 'validation_error', 'from');
    });
  }

  it('a domain counts from when it is verified until it is not', async () => {
    const from = 'a@pending.example';
    await service.pool.query(
      `UPDATE domains SET status = 'verified', verified_at = now() WHERE name = 'pending.example'`,
    );
    assert.equal((await ours.send({ from })).status, 202);
    await service.pool.query(
      `UPDATE domains SET status = 'failed', next_check_at = NULL WHERE name = 'pending.example'`,
    );
    assertRefused(await ours.send({ from }), 403, 'domain_not_verified', 'from');
    await service.pool.query(`DELETE FROM domains WHERE name = 'pending.example'`);
    assertRefused(await ours.send({ from }), 403, 'domain_not_found', 'from');
  });

  it('a key with domains sends from these only: insufficient_scope', async () => {
    const limited = await ours.addKey('full_access', [domain]);
    const post = (from: string) => service.call('POST', '/v1/emails', { key: limited, json: ours.mail({ from }) });
    assert.equal((await post(`a@${domain}`)).status, 202);
    assertRefused(await post(`a@${ours.domain}`), 403, 'insufficient_scope', 'from');
  });
});

describe('several errors at once', () => {
  /** Each wrong in its own way, with the params that name it. */
  const wrong: readonly (readonly [fields: Record<string, unknown>, param: string])[] = [
    [{ from: 5 }, 'from'],
    [{ to: ['a@example.net', 'nobody'] }, 'to.1'],
    [{ subject: '' }, 'subject'],
    [{ html: 5 }, 'html'],
    [{ tags: [{ name: 'a' }] }, 'tags.0.value'],
    [{ headers: { From: 'x' } }, 'headers.From'],
    [{ scheduled_at: 'soon' }, 'scheduled_at'],
    [{ unknown: 1 }, 'unknown'],
  ];
  for (const [index, [first, firstParam]] of wrong.entries()) {
    for (const [second, secondParam] of wrong.slice(index + 1)) {
      it(`param names one that is really wrong: ${firstParam} or ${secondParam}`, async () => {
        const answer = await ours.send({ ...first, ...second });
        const { param } = (answer.body as { error: { param?: string } }).error;
        assert.ok(param === firstParam || param === secondParam, answer.text);
        assertRefused(answer, 422, 'validation_error', param);
      });
    }
  }

  it('one of all', async () => {
    const answer = await ours.send(Object.assign({}, ...wrong.map(([fields]) => fields)) as Record<string, unknown>);
    const { param } = (answer.body as { error: { param: string } }).error;
    assert.ok(
      wrong.some(([, each]) => each === param),
      answer.text,
    );
  });
});

describe('keys that would reach an object prototype', () => {
  const post = (raw: string) =>
    ours.call('POST', '/v1/emails', { raw, headers: { 'content-type': 'application/json' } });
  const withPart = (part: string) => JSON.stringify(ours.mail()).replace('{', `{${part},`);

  for (const part of [
    '"__proto__":{"marketing":true}',
    '"__proto__":null',
    '"\\u005f_proto__":{}',
    '"headers":{"__proto__":"x"}',
    '"headers":{"X-A":"x","__proto__":{"X-B":"x"}}',
    '"tags":[{"name":"a","value":"b","__proto__":{}}]',
    '"constructor":{"prototype":{"marketing":true}}',
    '"headers":{"constructor":{"prototype":{}}}',
  ]) {
    it(`are valid JSON, and refused: ${part}`, async () => {
      assertRefused(await post(withPart(part)), 422, 'validation_error', undefined, 'the request body must not hold');
    });
  }

  it('may be what texts are about', async () => {
    const id = await ours.sent({ subject: '"__proto__": {}', headers: { constructor: '__proto__', toString: 'x' } });
    assert.deepEqual((await ours.email(id))['headers'], { constructor: '__proto__', toString: 'x' });
    assert.equal(({} as Record<string, unknown>)['marketing'], undefined);
  });
});
