import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { Client } from 'undici';
import { lived } from '../support/lived.ts';
import { assertRefused, MAX_BODY_BYTES, type Organization, type Service, startService } from './service.ts';
import { dial, head, listen, speak } from './socket.ts';

let service: Service;
let ours: Organization;
let readOnly: string;
/** Our ends of the connections, in the order in which they came. */
const connections: Socket[] = [];
before(async () => {
  service = await startService();
  service.server.on('connection', (socket: Socket) => connections.push(socket));
  ours = await service.organization();
  readOnly = await ours.addKey('read_only');
});
after(() => service.close());

const JSON_TYPE = 'Content-Type: application/json';

function post(raw: string | Buffer, type = 'application/json', headers: Record<string, string> = {}) {
  return ours.call('POST', '/v1/emails', { raw, headers: { 'content-type': type, ...headers } });
}

describe('415 unsupported_media_type', () => {
  for (const type of [
    ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/xml'],
    ...[
      'text/json5',
      'text/json',
      'application/jsonx',
      'application/json5',
      'application/ld+json',
      'image/png',
      'json',
    ],
    ...['*/*', 'application/*', 'application/json, text/plain', 'application', '/', ';', 'x/application/json'],
  ]) {
    it(type, async () => {
      assertRefused(await post(JSON.stringify(ours.mail()), type), 415, 'unsupported_media_type');
    });
  }

  it('no type at all', async () => {
    const raw = JSON.stringify(ours.mail());
    assertRefused(await ours.call('POST', '/v1/emails', { raw }), 415, 'unsupported_media_type');
  });

  for (const type of [
    ...['application/json', 'application/json; charset=utf-8', 'Application/JSON', 'application/json;charset=UTF-8'],
    ...['APPLICATION/JSON ; charset="utf-8"', 'application/json;version=1'],
  ]) {
    it(`but 202: ${type}`, async () => {
      assert.equal((await post(JSON.stringify(ours.mail()), type)).status, 202);
    });
  }
});

describe('415 unsupported_media_type: a compressed body', () => {
  for (const encoding of ['gzip', 'deflate', 'BR', 'gzip, identity']) {
    it(encoding, async () => {
      const answer = await post(gzipSync(JSON.stringify(ours.mail())), 'application/json', {
        'content-encoding': encoding,
      });
      const message = 'the request body must not be compressed; leave out Content-Encoding';
      assertRefused(answer, 415, 'unsupported_media_type', undefined, message);
      assert.equal(answer.headers['accept-encoding'], 'identity');
    });
  }

  it('but identity is accepted', async () => {
    const answer = await post(JSON.stringify(ours.mail()), 'application/json', { 'content-encoding': 'Identity' });
    assert.equal(answer.status, 202, answer.text);
  });
});

describe('400 invalid_json: body is not valid JSON', () => {
  for (const raw of [
    ...[
      '{',
      '',
      ' ',
      "{'a':1}",
      '{"a":1,}',
      '{"a":1}x',
      'nope',
      '{a:1}',
      '{"a":NaN}',
      '{"a":01}',
      '{"a":"\x01"}',
      '[1,2',
    ],
    ...['{"a":1}{"b":2}', '"', '// c\n{}', '{"a":+1}', '\0', '{"a": undefined}', '[,]', '{"a":1 "b":2}', '{"a":.5}'],
    ...['{"a":"\\x41"}', '{"a":"\\u12"}', '{"a":Infinity}', '{"a":0x1}', '{"a":"\n"}', 'undefined', '{}\0', '{}\u00a0'],
    ...['{"__proto__":1', '[]]', '\ufeff', '{"a":True}', 'a=b&c=d', '<a/>'],
  ]) {
    it(JSON.stringify(raw), async () => {
      assertRefused(await post(raw), 400, 'invalid_json');
    });
  }

  it('nothing at all', async () => {
    assertRefused(await ours.call('POST', '/v1/emails'), 400, 'invalid_json');
    const headers = { 'content-type': 'application/json' };
    assertRefused(await ours.call('POST', '/v1/emails', { headers }), 400, 'invalid_json');
  });

  it('100,000 brackets, open or closed, and a million', async () => {
    assertRefused(await post('['.repeat(100_000)), 400, 'invalid_json');
    assertRefused(await post('{"a":'.repeat(100_000)), 400, 'invalid_json');
    for (const depth of [5_000, 1_000_000]) {
      const nested = '['.repeat(depth) + ']'.repeat(depth);
      assertRefused(await post(nested), 422, 'validation_error', undefined, 'the request body must be a JSON object');
      const answer = await post(`${JSON.stringify(ours.mail()).slice(0, -1)},"tags":${nested}}`);
      assertRefused(answer, 422, 'validation_error', 'tags.0');
    }
  });

  it('invalid UTF-8', async () => {
    const [before, after] = JSON.stringify(ours.mail({ subject: 'SUBJECT' })).split('SUBJECT');
    for (const bytes of ['ff', 'c3', 'c0af', 'eda080', 'f4908080', 'f09f98']) {
      const raw = Buffer.concat([Buffer.from(before ?? ''), Buffer.from(bytes, 'hex'), Buffer.from(after ?? '')]);
      assertRefused(await post(raw), 400, 'invalid_json');
    }
    for (const encoding of ['utf16le', 'latin1'] as const) {
      const raw = Buffer.from(JSON.stringify(ours.mail({ subject: 'é' })), encoding);
      assertRefused(await post(raw), 400, 'invalid_json');
    }
  });

  for (const [raw, message] of [
    ['', 'the request body is empty; it must be a JSON object'],
    ['\ufeff', 'the request body is not valid JSON: it ends too early'],
    ['{"a":[1', 'the request body is not valid JSON: it ends too early'],
    ['{"a":1,}', 'the request body is not valid JSON at line 1, character 8'],
    ['{\n "é": "ü",\n  b: 1}', 'the request body is not valid JSON at line 3, character 3'],
    [`${' '.repeat(200_000)}{x}`, 'the request body is not valid JSON at byte 200002'],
    [Buffer.from('{"a":"\xff"}', 'latin1'), 'the request body must be UTF-8'],
    [Buffer.from(`${' '.repeat(200_000)}\xff`, 'latin1'), 'the request body must be UTF-8'],
  ] as const) {
    it(`the message says where and how: ${message} (${raw.length} bytes)`, async () => {
      assertRefused(await post(raw), 400, 'invalid_json', undefined, message);
    });
  }

  it('but a byte order mark, white space and escapes may stand', async () => {
    const raw = JSON.stringify(ours.mail());
    for (const each of [`\ufeff${raw}`, ` \r\n\t${raw}\n`, raw.replace('"subject"', '"\\u0073ubject"')]) {
      const answer = await post(each);
      assert.equal(answer.status, 202, answer.text);
    }
  });
});

describe('413 payload_too_large: request body over 43 MB', () => {
  const padded = (length: number) => JSON.stringify(ours.mail()).padEnd(length, ' ');

  it('43 MB are read, to the byte', async () => {
    assert.equal((await post(padded(MAX_BODY_BYTES))).status, 202);
    assertRefused(await post(padded(MAX_BODY_BYTES + 1)), 413, 'payload_too_large');
    assert.equal((await post(padded(42_900_000))).status, 202);
  });

  it('from Content-Length at once', async () => {
    for (const length of [MAX_BODY_BYTES + 1, 60_000_000, Number.MAX_SAFE_INTEGER, '9'.repeat(18)]) {
      const from = lived();
      const answer = await speak(
        service.port,
        `${head('/v1/emails', ours.key, JSON_TYPE, `Content-Length: ${length}`)}{`,
      );
      assertRefused(answer, 413, 'payload_too_large');
      assert.equal(answer.closed, true);
      assert.ok(lived() - from < 1_000);
    }
  });

  it('for a chunked body as soon as the limit is passed', async () => {
    const socket = await dial(service.port);
    const answered = listen(socket);
    socket.write(head('/v1/emails', ours.key, JSON_TYPE, 'Transfer-Encoding: chunked'));
    const written = await pour(socket, '{"text":"', 120);
    assertRefused(await answered, 413, 'payload_too_large');
    assert.ok(written > MAX_BODY_BYTES, `refused after ${written} bytes`);
    const { bytesRead } = connections.at(-1) as Socket;
    assert.ok(bytesRead < MAX_BODY_BYTES + 2_000_000, `read ${bytesRead} bytes`);
  });

  it('a chunked body within the limit is taken', async () => {
    const json = JSON.stringify(ours.mail());
    const chunks = Array.from(json, (letter) => `${Buffer.byteLength(letter).toString(16)}\r\n${letter}\r\n`).join('');
    const lines = [JSON_TYPE, 'Transfer-Encoding: chunked'];
    const answer = await speak(service.port, `${head('/v1/emails', ours.key, ...lines)}${chunks}0\r\n\r\n`);
    assert.equal(answer.status, 202, answer.text);
  });
});

describe('the key is checked before the body is read', () => {
  for (const [what, key, status] of [
    ['no key', () => undefined, 401],
    ['an unknown key', () => `sw_live_${'0'.repeat(26)}_${'0'.repeat(64)}`, 401],
    ['a key that may not send', () => readOnly, 403],
  ] as const) {
    for (const framing of ['Content-Length: 40000000', 'Transfer-Encoding: chunked']) {
      it(`${what}, 40 MB, ${framing}: answered when the head is there`, async () => {
        const answer = await speak(service.port, head('/v1/emails', key(), JSON_TYPE, framing));
        assert.equal(answer.status, status);
        assert.equal(answer.closed, true);
      });

      it(`${what}, 40 MB, ${framing}: of what follows at most 256 KiB is read`, async () => {
        const socket = await dial(service.port);
        const answered = listen(socket);
        socket.write(head('/v1/emails', key(), JSON_TYPE, framing));
        await pour(socket, '{"text":"', 40, framing.startsWith('Transfer'));
        assert.equal((await answered).status, status);
        const { bytesRead } = connections.at(-1) as Socket;
        assert.ok(bytesRead <= 262_144, `read ${bytesRead} bytes`);
      });
    }
  }

  it('an HTTP client gets to see the answer, though it is still writing', async () => {
    const raw = Buffer.alloc(40_000_000, ' ');
    for (let i = 0; i < 5; i++) {
      const answer = await service.call('POST', '/v1/emails', { raw, headers: { 'content-type': 'application/json' } });
      assertRefused(answer, 401, 'unauthorized');
    }
  });
});

describe('a refused request costs its connection only when much of it is still to come', () => {
  it('a short body', async () => {
    // One connection, and a new one only when that is ended.
    const client = new Client(service.url);
    const before = connections.length;
    for (let i = 0; i < 10; i++) {
      const { statusCode, headers, body } = await client.request({
        method: 'POST',
        path: '/v1/emails',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(ours.mail()),
      });
      await body.dump();
      assert.deepEqual([statusCode, headers['connection']], [401, 'keep-alive']);
    }
    assert.equal(connections.length, before + 1);
    await client.close();
  });

  it('a long body', async () => {
    const json = ours.mail({ html: 'a'.repeat(100_000) });
    const { headers } = await service.call('POST', '/v1/emails', { key: 'x', json });
    assert.equal(headers['connection'], 'close');
  });

  it('a connection that is to end does so, though nobody closes the other end', async () => {
    const socket = await dial(service.port);
    socket.write(head('/v1/emails', undefined, 'Content-Length: 40000000'));
    const ours = connections.at(-1) as Socket;
    for (let i = 0; i < 150 && !ours.destroyed; i++) await sleep(20);
    assert.ok(ours.destroyed);
    socket.destroy();
  });
});

/** Writes a body of up to so many million bytes for as long as the server takes it. @returns how many were written */
async function pour(socket: Socket, start: string, millions: number, chunked = true): Promise<number> {
  let written = 0;
  for (let i = 0; i < millions && !socket.destroyed; i++) {
    const block = (i === 0 ? start : '').padEnd(1_000_000, 'a');
    const flushed = new Promise<void>((resolve) => {
      socket.write(chunked ? `${block.length.toString(16)}\r\n${block}\r\n` : block, () => resolve());
    });
    await Promise.race([flushed, sleep(2_000)]);
    written += block.length;
  }
  return written;
}
