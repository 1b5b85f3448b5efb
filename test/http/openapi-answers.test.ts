import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { giveQuota } from '../../src/intake/quota.ts';
import { assertDescribed as assertAsDescribed } from './described.ts';
import { type Answer, type Organization, type Service, startService } from './service.ts';

type Json = Record<string, unknown>;

let service: Service;
let ours: Organization;
let api: Parameters<typeof assertAsDescribed>[0];
before(async () => {
  service = await startService();
  ours = await service.organization();
  api = (await service.call('GET', '/openapi.json')).body as typeof api;
});
after(() => service.close());

/** The id of a webhook endpoint. */
async function endpoint(): Promise<string> {
  const answer = await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
  return (answer.body as { id: string }).id;
}

/** The answer is one that the document tells of, with nothing more; one without a body has no form. */
function assertDescribed(path: string, method: string, answer: Answer): void {
  if (answer.status === 204) assert.ok(api.paths[path]?.[method]?.responses['204']);
  else assertAsDescribed(api, path, method, answer);
}

describe('every answer is one that is described, besides those about email', () => {
  const ID = `em_${'0'.repeat(26)}`;
  const unread = { raw: 'x', headers: { 'content-type': 'text/plain' } };
  const notJson = { raw: '{', headers: { 'content-type': 'application/json' } };

  it('webhooks', async () => {
    const path = '/v1/webhooks';
    const readOnly = await ours.addKey('read_only');
    const [id, disabled] = [await endpoint(), await endpoint()];
    await ours.call('PATCH', `${path}/${disabled}`, { json: { status: 'disabled' } });
    const { body } = await ours.call('POST', `${path}/${id}/test`);
    const delivery = (body as { id: string }).id;
    for (const answer of [
      await ours.call('POST', path, { json: { url: 'https://example.com/' } }),
      await ours.call('POST', path, { json: {} }),
      await ours.call('POST', path, notJson),
      await service.call('POST', path, { json: { url: 'https://example.com/' }, key: readOnly }),
    ]) {
      assertDescribed(path, 'post', answer);
    }
    assertDescribed(path, 'get', await ours.call('GET', path));
    const since = { json: { since: '2026-03-01T00:00:00Z' } };
    for (const [method, tail, call] of [
      ['get', '', {}],
      ['get', '/deliveries', {}],
      ['get', '/deliveries/{deliveryId}', {}],
      ['patch', '', { json: { events: [] } }],
      ['post', '/rotate-secret', {}],
      ['post', '/test', {}],
      ['post', '/replay', since],
      ['post', '/deliveries/{deliveryId}/replay', {}],
      ['delete', '', {}],
    ] as const) {
      for (const each of [disabled, id, ID]) {
        for (const more of [call, { ...call, key: 'x' }, { ...unread }]) {
          if (method === 'get' && 'raw' in more) continue;
          const answer = await ours.call(
            method.toUpperCase(),
            `${path}/${each}${tail.replace('{deliveryId}', delivery)}`,
            more,
          );
          const operation = `${path}/{id}${tail}`;
          assertDescribed(operation, method, answer);
        }
      }
    }
  });

  it('API keys', async () => {
    const path = '/v1/keys';
    const readOnly = await ours.addKey('read_only');
    const domain_ids = [await ours.addDomain('described.example')];
    const full = {
      preset: 'full_access',
      name: 'x',
      domain_ids,
      expires_at: '2099-01-01T00:00:00Z',
      allowed_ips: ['::1'],
    };
    const made = await ours.call('POST', path, { json: full });
    assert.equal(made.status, 201, made.text);
    for (const answer of [
      made,
      await ours.call('POST', path, { json: { preset: 'read_only' } }),
      await ours.call('POST', path, { json: { ...full, domain_ids: ['x'] } }),
      await ours.call('POST', path, { json: {} }),
      await ours.call('POST', path, unread),
      await ours.call('POST', path, notJson),
      await service.call('POST', path, { json: full, key: readOnly }),
    ]) {
      assertDescribed(path, 'post', answer);
    }
    for (const key of [ours.key, readOnly, 'x']) assertDescribed(path, 'get', await service.call('GET', path, { key }));
    assertDescribed(path, 'get', await ours.call('GET', `${path}?limit=0`));
    const { id } = made.body as { id: string };
    for (const method of ['get', 'delete']) {
      for (const each of [ID, `${id}?x=1`, id]) {
        for (const key of ['x', readOnly, ours.key]) {
          const answer = await service.call(method.toUpperCase(), `${path}/${each}`, { key });
          assertDescribed(`${path}/{id}`, method, answer);
        }
      }
    }
  });

  it('too many requests, too many emails, and a quota that is used up', async (t) => {
    const limited = await startService({ perSecond: { requests: 1, mails: 1 } });
    t.after(() => limited.close());
    const [one, two] = [await limited.organization(), await limited.organization()];
    const emails = Array.from({ length: 100 }, () => one.mail());
    await one.call('POST', '/v1/emails/batch', { json: { emails } });
    await giveQuota(limited.pool, two.id, 0);
    const answers = [await one.send(), await one.send(), await two.send()];
    assert.deepEqual(
      answers.map(({ body }) => (body as { error: { code: string } }).error.code),
      ['rate_limit_exceeded', 'rate_limit_exceeded', 'quota_exceeded'],
    );
    for (const answer of answers) assertDescribed('/v1/emails', 'post', answer);
    assertDescribed('/v1/keys', 'get', await one.call('GET', '/v1/keys'));
  });

  it('suppressions', async () => {
    const path = '/v1/suppressions';
    const readOnly = await ours.addKey('read_only');
    for (const answer of [
      await ours.call('POST', path, { json: { email: 'described@example.net' } }),
      await ours.call('POST', path, { json: { email: 'described@example.net' } }),
      await ours.call('POST', path, { json: { emails: ['described@example.net', 'more@example.net'] } }),
      await ours.call('POST', path, { json: {} }),
      await ours.call('POST', path, unread),
      await ours.call('POST', path, notJson),
      await service.call('POST', path, { json: { email: 'a@example.net' }, key: readOnly }),
    ]) {
      assertDescribed(path, 'post', answer);
    }
    assertDescribed(path, 'get', await ours.call('GET', path));
    for (const [method, calls] of [
      ['get', ['described@example.net', 'nobody@example.net', 'more@example.net?x=1']],
      ['delete', ['described@example.net', 'described@example.net', 'more@example.net?x=1']],
    ] as const) {
      for (const name of calls) {
        const answer = await ours.call(method.toUpperCase(), `${path}/${name}`);
        assertDescribed(`${path}/{idOrEmail}`, method, answer);
      }
    }
  });

  it('chat-app messages', async () => {
    const path = '/v1/chatapp';
    const [readOnly, sending] = [await ours.addKey('read_only'), await ours.addKey('sending_access')];
    const [to, link] = ['+14165550123', 'https://example.com/a.pdf'];
    const template = { name: 't', language: { code: 'en' }, components: [{ type: 'body', parameters: [{ n: 1 }] }] };
    const messages: Json[] = [
      { text: 'Hi.', preview_url: true },
      { type: 'template', template },
      { type: 'template', template: { name: 't', language: 'en' } },
      { type: 'image', text: 'Look', image: { link, caption: null } },
      { type: 'document', document: { link, caption: 'Yours', filename: 'a.pdf' } },
    ];
    const post = (json: Json, more = {}) => ours.call('POST', path, { json: { to, ...json }, ...more });
    assertDescribed(path, 'post', await post({ text: 'Hi.' }));
    await ours.call('POST', `${path}/numbers`, {
      json: { number: '+12025550142', provider: 'twilio', auth_token: 'token' },
    });
    for (const json of messages) {
      const answer = await post(json);
      assert.equal(answer.status, 202, answer.text);
      assertDescribed(path, 'post', answer);
      const { id } = answer.body as { id: string };
      assertDescribed(`${path}/{id}`, 'get', await ours.call('GET', `${path}/${id}`));
    }
    await service.pool.query(
      `UPDATE chat_messages SET status = 'failed', error = 'no', error_code = '1' WHERE type = 'text'`,
    );
    const once = { headers: { 'idempotency-key': 'described' } };
    for (const answer of [
      await post({ text: 'Hi.' }, once),
      await post({ text: 'Hi.' }, once),
      await post({ text: 'Ho.' }, once),
      await post({ text: 'Hi.' }, { headers: { 'idempotency-key': '' } }),
      await post({}),
      await post({ text: 'Hi.', from: '+12025559999' }),
      await post({ text: 'Hi.' }, { key: 'x' }),
      await post({ text: 'Hi.' }, { key: readOnly }),
      await ours.call('POST', path, unread),
      await ours.call('POST', path, notJson),
      await ours.call('POST', path, { raw: Buffer.alloc(2_000_000), headers: unread.headers }),
    ]) {
      assertDescribed(path, 'post', answer);
    }
    for (const query of ['', '?status=failed', '?x=1']) {
      assertDescribed(path, 'get', await ours.call('GET', path + query));
    }
    for (const [of, at] of [
      [path, path],
      [`${path}/{id}`, `${path}/${ID}`],
    ] as const) {
      for (const key of [ours.key, 'x', sending]) {
        assertDescribed(of, 'get', await service.call('GET', at, { key }));
      }
    }
  });

  it('chat-app numbers', async () => {
    const path = '/v1/chatapp/numbers';
    const readOnly = await ours.addKey('read_only');
    const templates = [{ name: 't', language: 'en', content_sid: `HX${'0'.repeat(32)}` }];
    const json = { number: '+12025550143', provider: 'twilio', auth_token: 'token', templates };
    const made = await ours.call('POST', path, { json });
    assert.equal(made.status, 201, made.text);
    for (const answer of [
      made,
      await ours.call('POST', path, { json }),
      await ours.call('POST', path, { json: { number: '+12025550144', provider: 'meta', phone_number_id: '1' } }),
      await ours.call('POST', path, { json: {} }),
      await ours.call('POST', path, unread),
      await ours.call('POST', path, notJson),
      await service.call('POST', path, { json, key: readOnly }),
    ]) {
      assertDescribed(path, 'post', answer);
    }
    assertDescribed(path, 'get', await ours.call('GET', path));
    assertDescribed(path, 'get', await ours.call('GET', `${path}?limit=0`));
    const { id } = made.body as { id: string };
    for (const method of ['get', 'delete']) {
      for (const each of [ID, `${id}?x=1`, id]) {
        for (const key of ['x', await ours.addKey('sending_access'), ours.key]) {
          const answer = await service.call(method.toUpperCase(), `${path}/${each}`, { key });
          assertDescribed(`${path}/{id}`, method, answer);
        }
      }
    }
  });

  it('domains', async () => {
    const path = '/v1/domains';
    const readOnly = await ours.addKey('read_only');
    const json = { name: 'described.example.com' };
    const made = await ours.call('POST', path, { json });
    assert.equal(made.status, 201, made.text);
    for (const answer of [
      made,
      await ours.call('POST', path, { json }),
      await ours.call('POST', path, { json: {} }),
      await ours.call('POST', path, unread),
      await ours.call('POST', path, notJson),
      await service.call('POST', path, { json, key: readOnly }),
    ]) {
      assertDescribed(path, 'post', answer);
    }
    assertDescribed(path, 'get', await ours.call('GET', path));
    assertDescribed(path, 'get', await ours.call('GET', `${path}?limit=0`));
    const { id } = made.body as { id: string };
    for (const [method, tail] of [
      ['get', ''],
      ['post', '/verify'],
      ['delete', ''],
    ] as const) {
      for (const each of [ID, id]) {
        for (const query of ['?x=1', '']) {
          for (const key of ['x', await ours.addKey('sending_access'), ours.key]) {
            const answer = await service.call(method.toUpperCase(), `${path}/${each}${tail}${query}`, { key });
            assertDescribed(`${path}/{id}${tail}`, method, answer);
          }
        }
      }
    }
  });
});
