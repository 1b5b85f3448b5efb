import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ROUTES } from '../../src/http/app.ts';
import { describeErrors } from '../../src/http/docs/errors.ts';
import { eventually } from '../support/eventually.ts';
import { assertRefused, bodyOf, type Call, REQUEST_ID, useService } from './service.ts';
import { connectSocket, head, sendBytes } from './socket.ts';

const service = await useService();
const ours = await service.organization();
type Line = Record<string, unknown>;
const lines = () => service.log.map((line) => JSON.parse(line) as Line);
const ID = `em_${'0'.repeat(26)}`;

describe('the error body', () => {
  it('{"error":{"code", "message", "param", "errors", "docs", "request_id"}}', async () => {
    const rule = 'must be local@domain or Name <local@domain>';
    const nothing = 'there is nothing at this address; /docs lists the addresses of this API';
    const fault = (param: string) => ({ param, message: `${param}: ${rule}` });
    const docs = `http://127.0.0.1:${service.port}/docs/errors`;
    for (const [answer, error] of [
      [
        await ours.send({ to: ['a', 'x'] }),
        { code: 'validation_error', ...fault('to.0'), errors: [fault('to.0'), fault('to.1')] },
      ],
      [await ours.call('GET', '/v1/nothing'), { code: 'not_found', message: nothing }],
    ] as const) {
      const expected = { ...error, docs: `${docs}#${error.code}`, request_id: answer.headers['x-request-id'] };
      assert.deepEqual(answer.body, { error: expected });
    }
  });

  for (const [name, fields] of [
    ['the name of a header', { headers: { [`${'a'.repeat(125)}😀`]: 'x' } }],
    ['an unknown field', { [`${'a'.repeat(199)}😀`]: 'x' }],
    ['an unknown field with half of a surrogate pair', { 'a\ud83d': 'x' }],
  ] as const) {
    it(`is well-formed Unicode for ${name}`, async () => {
      const answer = await ours.send(fields);
      const { error } = bodyOf<{ error: { param: string; message: string } }>(answer, 422);
      assert.ok(error.param.isWellFormed() && error.message.isWellFormed(), answer.text);
    });
  }
});

/** Requests that get an example of /openapi.json exactly. */
const EXAMPLES: readonly [code: string, method: string, path: string, call: Call][] = [
  ['invalid_json', 'POST', '/v1/emails', { raw: '{\n"a" 1}', headers: { 'content-type': 'application/json' } }],
  ['invalid_idempotency_key', 'POST', '/v1/emails', { json: {}, headers: { 'idempotency-key': '' } }],
  ['unauthorized', 'GET', '/v1/emails', { key: 'no key' }],
  ['domain_not_found', 'POST', '/v1/emails', { json: ours.mail({ from: 'a@example.org' }) }],
  ['not_found', 'GET', `/v1/emails/${ID}`, {}],
  ['unsupported_media_type', 'POST', '/v1/emails', { raw: 'x', headers: { 'content-type': 'text/plain' } }],
  ['validation_error', 'GET', '/v1/emails?x=1', {}],
  [
    'invalid_attachment',
    'POST',
    '/v1/emails',
    { json: ours.mail({ attachments: [{ filename: 'setup.exe', content: 'aGk=' }] }) },
  ],
  ['no_chatapp_account', 'POST', '/v1/chatapp', { json: { to: '+14165550123', text: 'Hi.' } }],
  ['no_sms_sender', 'POST', '/v1/sms', { json: { to: '+14165550123', text: 'Hi.' } }],
];

describe('an example of /openapi.json is an error that the API returns', () => {
  for (const [code, method, path, call] of EXAMPLES) {
    it(code, async () => {
      const answer = await ours.call(method, path, call);
      const operation = `${method} ${path.replace(/\?.*/, '').replace(ID, '{id}')}`;
      const { value } = describeErrors(operation, answer.status).examples[code] ?? {};
      const { error } = value as { error: object };
      const docs = `http://127.0.0.1:${service.port}/docs/errors#${code}`;
      assert.deepEqual(answer.body, { error: { ...error, docs, request_id: answer.headers['x-request-id'] } });
    });
  }
});

describe('X-Request-Id is on every response, and the log line has the same id', () => {
  for (const [name, ask, status] of [
    ['a response', () => ours.send(), 202],
    ['an error', () => ours.send({ subject: '' }), 422],
    ['an unknown method', () => ours.call('PUT', '/v1/emails'), 405],
    ['a callback without a password', () => service.call('POST', '/callbacks/postmark', { json: {} }), 401],
    ['HEAD', () => ours.call('HEAD', `/v1/emails/${ID}`), 404],
    ['a request that is not HTTP', () => sendBytes(service.port, 'nonsense\r\n\r\n'), 400],
    ['a request without Host', () => sendBytes(service.port, 'GET /dashboard HTTP/1.1\r\n\r\n'), 400],
    ...['HTTP/1.1', 'HTTP/1.0'].map(
      (version) =>
        [
          `an ${version} request with two Host headers`,
          () => sendBytes(service.port, `GET /healthz ${version}\r\nHost: a\r\nhost: b\r\n\r\n`),
          400,
        ] as const,
    ),
    ['an HTTP/1.0 request without Host', () => sendBytes(service.port, 'GET /healthz HTTP/1.0\r\n\r\n'), 200],
    [
      'an unknown expectation',
      () => sendBytes(service.port, 'GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: foo\r\n\r\n'),
      200,
    ],
  ] as const) {
    it(name, async () => {
      const answer = await ask();
      assert.equal(answer.status, status);
      const id = String(answer.headers['x-request-id']);
      assert.match(id, REQUEST_ID);
      const logged = lines().filter((line) => line['reqId'] === id);
      assert.deepEqual(
        logged.map((line) => [line['status'], line['level']]),
        [[status, 30]],
      );
    });
  }

  it('ignores the id of a caller', async () => {
    const given = `req_${'0'.repeat(26)}`;
    const { headers } = await ours.call('GET', `/v1/emails/${ID}`, { headers: { 'x-request-id': given } });
    assert.notEqual(headers['x-request-id'], given);
  });

  it('is logged with the ids of the organization, the key and the new email', async () => {
    const { headers, body } = await ours.send();
    const { method, route, org, key, target } = lines().find((line) => line['reqId'] === headers['x-request-id']) ?? {};
    const { id } = body as { id: string };
    const keyId = `key_${ours.key.split('_')[2]}`;
    assert.deepEqual([method, route, org, key, target], ['POST', '/v1/emails', ours.id, keyId, id]);
  });
});

describe('404 not_found for unknown routes', () => {
  for (const path of [
    ...['/v1', '/v1/nothing', '/v1/emails/', '/V1/emails', '//v1/emails', '/v1//emails', '/v1%2Femails'],
    ...['/healthz/', '/callbacks/unknown', '/%ZZ', '/v1/%00'],
  ]) {
    it(path, async () => {
      assertRefused(await ours.call('GET', path), 404, 'not_found');
    });
  }

  for (const path of ['/v1', '/v1/', '/v1/a/b/c/d', '/v1?x=1', '/%76%31/nothing', '/v1/%ZZ', '/v1/%00']) {
    it(`but 401 without a key for ${path}`, async () => {
      assertRefused(await service.call('GET', path), 401, 'unauthorized');
    });
  }

  for (const target of ['http://api.test/v1/nothing', 'HTTPS://api.test:1/v1/emails', '/v1#x']) {
    it(`but 401 without a key for the target ${target}`, async () => {
      assertRefused(
        await sendBytes(service.port, `GET ${target} HTTP/1.1\r\nHost: api.test\r\n\r\n`),
        401,
        'unauthorized',
      );
    });
  }

  it('also without a key outside of /v1', async () => {
    for (const path of ['/v2/emails', '/v12', '/V1']) {
      assertRefused(await service.call('GET', path), 404, 'not_found');
    }
  });

  it('but the route answers for an absolute target (RFC 9112 §3.2.2)', async () => {
    const answer = await sendBytes(service.port, 'GET http://api.test/healthz?x=1 HTTP/1.1\r\nHost: api.test\r\n\r\n');
    assertRefused(answer, 422, 'validation_error', 'x');
    assert.equal(
      (await sendBytes(service.port, 'GET http://api.test/healthz HTTP/1.1\r\nHost: a\r\n\r\n')).status,
      200,
    );
    assertRefused(await sendBytes(service.port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'), 404, 'not_found');
  });
});

describe('hints for first requests', () => {
  it('GET / redirects to the dashboard, without a key', async () => {
    const answer = await service.call('GET', '/');
    assert.equal(answer.status, 303);
    assert.equal(answer.headers['location'], '/dashboard');
  });

  const TYPE = 'content-type';
  for (const [request, status, code, message] of [
    [
      () =>
        sendBytes(service.port, head('/v1/emails', ours.key, `${TYPE}: application/json`, 'Content-Length: 45088769')),
      413,
      'payload_too_large',
      'the request body is too large; at most 43 MB, 45,088,768 bytes are allowed',
    ],
    [
      () => ours.call('POST', '/v1/emails', { raw: '{}', headers: { [TYPE]: 'text/plain' } }),
      415,
      'unsupported_media_type',
      'the request body must be JSON; send the header Content-Type: application/json',
    ],
    [
      () => ours.call('POST', '/v1/emails/batch', { json: [ours.mail()] }),
      422,
      'validation_error',
      'the request body must be a JSON object; wrap the array: {"emails": […]}',
    ],
  ] as const) {
    it(`${status}: ${message}`, async () => assertRefused(await request(), status, code, undefined, message));
  }

  it('422 for several addresses in a string suggests an array where one is accepted', async () => {
    const several = 'a@example.net, b@example.net';
    for (const field of ['to', 'cc', 'bcc', 'reply_to']) {
      const message = `must be one address with one @; give several addresses as an array`;
      assertRefused(await ours.send({ [field]: several }), 422, 'validation_error', field, message);
    }
    const message = 'must be one address with one @';
    assertRefused(await ours.send({ from: several }), 422, 'validation_error', 'from', message);
  });
});

describe('405 method_not_allowed with Allow', () => {
  for (const [method, path, allow] of [
    ['HEAD', `/v1/emails/${ID}/cancel`, 'POST'],
    ['DELETE', '/v1/emails', 'POST, GET'],
    ['POST', '/v1/emails/a%2Fb', 'GET, PATCH'],
    ['DELETE', `/v1/emails/${ID}/cancel?x=1`, 'POST'],
    ['PATCH', '/v1/emails/b%61tch', 'POST, GET'],
    ['POST', '/healthz', 'GET'],
    ['GET', '/callbacks/postmark', 'POST'],
  ] as const) {
    it(`${method} ${path.slice(0, 40)}`, async () => {
      const answer = await ours.call(method, path);
      assert.equal(answer.headers['allow'], allow);
      if (method === 'HEAD') assert.equal(answer.status, 405);
      else
        assertRefused(
          answer,
          405,
          'method_not_allowed',
          undefined,
          `this method is not allowed here; allowed: ${allow}`,
        );
    });
  }

  it('for each method that a path without parameters does not have, also if a path with parameters has it', async () => {
    const paths = new Set(ROUTES.map(([, url]) => url).filter((url) => !url.includes(':')));
    for (const path of paths) {
      const allowed = ROUTES.filter(([, url]) => url === path).map(([method]) => String(method));
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((each) => !allowed.includes(each))) {
        const answer = await ours.call(method, path);
        assert.deepEqual([answer.status, answer.headers['allow']], [405, allowed.join(', ')], `${method} ${path}`);
      }
    }
  });
});

describe('a request that is not HTTP', () => {
  const post = (...lines: string[]) => head('/v1/emails', ours.key, 'Content-Type: application/json', ...lines);
  for (const [name, request, status, code] of [
    ['bytes', () => '\0\x01\x02\r\n\r\n', 400, 'invalid_json'],
    ['an unknown method', () => 'SEND /v1/emails HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'invalid_json'],
    ['a space in a header name', () => 'GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n', 400, 'invalid_json'],
    ['NUL in a header', () => 'GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n', 400, 'invalid_json'],
    ['two lengths', () => `${post('Content-Length: 2', 'Content-Length: 3')}{}`, 400, 'invalid_json'],
    ['a length and chunks', () => `${post('Content-Length: 2', 'Transfer-Encoding: chunked')}{}`, 400, 'invalid_json'],
    ['a chunk of no length', () => `${post('Transfer-Encoding: chunked')}ZZ\r\n{}\r\n`, 400, 'invalid_json'],
    ['headers of 20 kB', () => `GET /healthz HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'payload_too_large'],
    ['an address of 20 kB', () => `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`, 431, 'payload_too_large'],
  ] as const) {
    it(`${name}: returns ${status} with the envelope and closes the connection`, async () => {
      const answer = await sendBytes(service.port, request());
      assertRefused(answer, status, code);
      assert.equal(answer.closed, true);
    });
  }

  for (const end of ['destroySoon', 'resetAndDestroy'] as const) {
    it(`is logged without an error if the caller hangs up, by ${end}, and delays no other request`, async () => {
      const from = service.log.length;
      const socket = await connectSocket(service.port);
      socket.write(`${post('Content-Length: 1000')}{"a":`);
      assert.equal((await ours.send()).status, 202);
      socket[end]();
      const logged = () => lines().slice(from);
      await eventually('the log line', () => logged().some(({ msg }) => msg === 'the caller hung up'));
      for (const { level } of logged()) assert.equal(level, 30);
    });
  }
});
