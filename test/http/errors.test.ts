import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { lived } from '../support/lived.ts';
import { assertRefused, type Organization, REQUEST_ID, type Service, startService } from './service.ts';
import { dial, head, speak } from './socket.ts';

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

const ID = `em_${'0'.repeat(26)}`;

describe('the error body', () => {
  it('{"error":{"code", "message", "param", "request_id"}}', async () => {
    const { headers, body } = await ours.send({ to: ['a@example.net', 'nobody'] });
    assert.deepEqual(body, {
      error: {
        code: 'validation_error',
        message: 'to.1: must be local@domain or Name <local@domain>',
        param: 'to.1',
        request_id: headers['x-request-id'],
      },
    });
  });

  it('param is absent when there is none', async () => {
    const { headers, body } = await ours.call('GET', '/v1/nothing');
    const message = 'there is nothing at this address; /docs lists the addresses of this API';
    assert.deepEqual(body, { error: { code: 'not_found', message, request_id: headers['x-request-id'] } });
  });
});

describe('X-Request-Id on every response; the log line carries the same id', () => {
  for (const [what, ask, status] of [
    ['an answer', () => ours.send(), 202],
    ['an error', () => ours.send({ subject: '' }), 422],
    ['no key', () => service.call('GET', `/v1/emails/${ID}`), 401],
    ['no route', () => ours.call('GET', '/nothing'), 404],
    ['no method', () => ours.call('PUT', '/v1/emails'), 405],
    ['a broken address', () => ours.call('GET', '/v1/emails/%ZZ'), 404],
    ['health', () => service.call('GET', '/healthz'), 200],
    ['readiness', () => service.call('GET', '/readyz'), 200],
    ['a callback without a password', () => service.call('POST', '/callbacks/postmark', { json: {} }), 401],
    ['HEAD', () => ours.call('HEAD', `/v1/emails/${ID}`), 404],
    ['no HTTP', () => speak(service.port, 'nonsense\r\n\r\n'), 400],
  ] as const) {
    it(what, async () => {
      const answer = await ask();
      assert.equal(answer.status, status);
      const id = String(answer.headers['x-request-id']);
      assert.match(id, REQUEST_ID);
      const lines = service.log
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((l) => l['reqId'] === id);
      assert.deepEqual(
        lines.map((line) => [line['status'], line['level']]),
        [[status, 30]],
        'one line, of the status that was answered',
      );
    });
  }

  it("a caller's own id is not taken", async () => {
    const given = `req_${'0'.repeat(26)}`;
    const { headers } = await ours.call('GET', `/v1/emails/${ID}`, { headers: { 'x-request-id': given } });
    assert.notEqual(headers['x-request-id'], given);
  });

  it('names the organization and the key, by their ids', async () => {
    const { headers } = await ours.send();
    const line = service.log.find((each) => each.includes(String(headers['x-request-id'])));
    const { method, route, org, key } = JSON.parse(String(line)) as Record<string, string>;
    assert.deepEqual({ method, route, org }, { method: 'POST', route: '/v1/emails', org: ours.id });
    assert.equal(key?.slice(4), ours.key.split('_')[2]);
  });
});

describe('404 not_found for unknown routes', () => {
  for (const path of [
    ...['/v1', '/v1/', '/v1/nothing', '/v1/email', '/v1/emails/', '/v1/emails/a/b', '/v1/emails/a/b/c'],
    ...['/V1/emails', '/v1/Emails', '/v2/emails', '//v1/emails', '/v1//emails', '/v1/emails//', '/v1%2Femails'],
    ...['/healthz/', '/callbacks', '/callbacks/nobody', '/.env', '/favicon.ico', '/%ZZ', '/%00', '/v1/%', '/v1/%00'],
  ]) {
    it(path, async () => {
      assertRefused(await ours.call('GET', path), 404, 'not_found');
    });
  }

  it('under /v1 the key comes first, however the address is written', async () => {
    for (const path of [
      '/v1',
      '/v1/',
      '/v1/nothing',
      '/v1/a/b/c/d',
      '/v1?x=1',
      '/%76%31/nothing',
      '/v1/%ZZ',
      '/v1/%00',
    ]) {
      assertRefused(await service.call('GET', path), 401, 'unauthorized');
    }
    const long = `/v1/emails/${'x'.repeat(10_000)}`;
    assertRefused(await service.call('GET', long), 401, 'unauthorized');
    for (const target of ['http://api.test/v1/nothing', 'HTTPS://api.test:1/v1/emails', '/v1#x']) {
      assertRefused(await speak(service.port, `GET ${target} HTTP/1.1\r\nHost: api.test\r\n\r\n`), 401, 'unauthorized');
    }
    for (const path of ['/v2/emails', '/v12', '/V1']) {
      assertRefused(await service.call('GET', path), 404, 'not_found');
    }
  });

  it('an absolute address is the same address (RFC 9112 §3.2.2)', async () => {
    const answer = await speak(service.port, 'GET http://api.test/healthz?x=1 HTTP/1.1\r\nHost: api.test\r\n\r\n');
    assertRefused(answer, 422, 'validation_error', 'x');
    assert.equal((await speak(service.port, 'GET http://api.test/healthz HTTP/1.1\r\nHost: a\r\n\r\n')).status, 200);
    assertRefused(await speak(service.port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'), 404, 'not_found');
  });
});

describe('hints for first requests', () => {
  it('GET / leads to the dashboard, without a key', async () => {
    const answer = await service.call('GET', '/');
    assert.equal(answer.status, 303);
    assert.equal(answer.headers['location'], '/dashboard');
  });

  it('413 names the limit', async () => {
    const message = 'the request body is too large; at most 43 MB, 45,088,768 bytes are allowed';
    const type = 'Content-Type: application/json';
    const request = head('/v1/emails', ours.key, type, 'Content-Length: 45088769');
    assertRefused(await speak(service.port, request), 413, 'payload_too_large', undefined, message);
  });

  it('415 names the header to send', async () => {
    const message = 'the request body must be JSON; send the header Content-Type: application/json';
    const answer = await ours.call('POST', '/v1/emails', { raw: '{}', headers: { 'content-type': 'text/plain' } });
    assertRefused(answer, 415, 'unsupported_media_type', undefined, message);
    assert.equal(answer.headers['accept-encoding'], undefined, 'the type is the problem, not a coding');
  });

  it('an array where its object is required: the field to put it into', async () => {
    const message = 'the request body must be a JSON object; wrap the array: {"emails": […]}';
    const answer = await ours.call('POST', '/v1/emails/batch', { json: [ours.mail()] });
    assertRefused(answer, 422, 'validation_error', undefined, message);
  });

  it('several addresses in one string: an array, where one is accepted', async () => {
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
    ['PUT', '/v1/emails', 'POST, GET'],
    ['PATCH', '/v1/emails', 'POST, GET'],
    ['OPTIONS', '/v1/emails', 'POST, GET'],
    ['OPTIONS', '/v1/emails/tags', 'GET'],
    ['TRACE', '/v1/emails', 'POST, GET'],
    ['PROPFIND', '/v1/emails', 'POST, GET'],
    ['QUERY', '/v1/emails', 'POST, GET'],
    ['DELETE', `/v1/emails/${ID}`, 'GET, PATCH'],
    ['PUT', `/v1/emails/${ID}`, 'GET, PATCH'],
    ['POST', `/v1/emails/${'x'.repeat(1_000)}`, 'GET, PATCH'],
    ['POST', '/v1/emails/a%2Fb', 'GET, PATCH'],
    ['GET', `/v1/emails/${ID}/cancel`, 'POST'],
    ['DELETE', `/v1/emails/${ID}/cancel?x=1`, 'POST'],
    ['POST', '/healthz', 'GET'],
    ['GET', '/callbacks/postmark', 'POST'],
    ['DELETE', '/openapi.json', 'GET'],
  ] as const) {
    it(`${method} ${path.slice(0, 40)}`, async () => {
      const answer = await ours.call(method, path);
      assert.equal(answer.headers['allow'], allow);
      if (method === 'HEAD') assert.equal(answer.status, 405);
      else assertRefused(answer, 405, 'method_not_allowed', undefined, `this address takes ${allow}`);
    });
  }
});

describe('what is no HTTP', () => {
  const post = (...lines: string[]) => head('/v1/emails', ours.key, 'Content-Type: application/json', ...lines);
  for (const [what, request, status, code] of [
    ['bytes', () => '\0\x01\x02\r\n\r\n', 400, 'invalid_json'],
    ['an unknown method', () => 'SEND /v1/emails HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'invalid_json'],
    ['TLS', () => Buffer.from('16030100a5010000a10303', 'hex'), 400, 'invalid_json'],
    ['a space in a header name', () => 'GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n', 400, 'invalid_json'],
    ['a folded header', () => 'GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n', 400, 'invalid_json'],
    ['NUL in a header', () => 'GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n', 400, 'invalid_json'],
    ['two lengths', () => `${post('Content-Length: 2', 'Content-Length: 3')}{}`, 400, 'invalid_json'],
    ['a length and chunks', () => `${post('Content-Length: 2', 'Transfer-Encoding: chunked')}{}`, 400, 'invalid_json'],
    ['a negative length', () => `${post('Content-Length: -2')}{}`, 400, 'invalid_json'],
    ['a length of another kind', () => `${post('Content-Length: 0x10')}{}`, 400, 'invalid_json'],
    ['a chunk of no length', () => `${post('Transfer-Encoding: chunked')}ZZ\r\n{}\r\n`, 400, 'invalid_json'],
    ['headers of 20 kB', () => `GET /healthz HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'payload_too_large'],
    ['an address of 20 kB', () => `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`, 431, 'payload_too_large'],
  ] as const) {
    it(`${what}: ${status}, the envelope, and the connection ends`, async () => {
      const answer = await speak(service.port, request());
      assertRefused(answer, status, code);
      assert.equal(answer.closed, true);
      const line = service.log.filter((each) => each.includes(String(answer.headers['x-request-id'])));
      assert.equal(line.length, 1);
    });
  }

  it('does no harm to others', async () => {
    await Promise.all(Array.from({ length: 20 }, () => speak(service.port, 'nonsense\r\n\r\n')));
    assert.equal((await ours.send()).status, 202);
  });

  it('a request has a minute for its head and five for the rest', () => {
    const { headersTimeout, requestTimeout } = service.server;
    assert.deepEqual([headersTimeout, requestTimeout], [60_000, 300_000]);
  });

  it('half a request keeps nobody waiting', async () => {
    const socket = await dial(service.port);
    socket.write(`${post('Content-Length: 1000')}{"a":`);
    const before = lived();
    assert.equal((await ours.send()).status, 202);
    assert.ok(lived() - before < 1_000);
    socket.destroy();
  });

  for (const how of ['destroySoon', 'resetAndDestroy'] as const) {
    it(`a caller who hangs up is no fault of ours, and no error in the log: ${how}`, async () => {
      const from = service.log.length;
      const socket = await dial(service.port);
      socket.write(`${post('Content-Length: 1000')}{"a":`);
      await sleep(50);
      socket[how]();
      const said = () => service.log.slice(from).map((line) => JSON.parse(line) as { level: number; msg: string });
      for (let i = 0; i < 100 && !said().some(({ msg }) => msg === 'the caller hung up'); i++) await sleep(20);
      assert.deepEqual(
        said().map(({ level }) => level),
        Array(said().length).fill(30),
      );
      assert.ok(said().some(({ msg }) => msg === 'the caller hung up'));
    });
  }
});
