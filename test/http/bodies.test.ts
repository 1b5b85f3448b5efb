import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { Client } from 'undici';
import { eventually } from '../support/eventually.ts';
import { assertRefused, MAX_BODY_BYTES, useService } from './service.ts';
import { connectSocket, head, listen, sendBytes } from './socket.ts';

const service = await useService();
/** The server's ends of the connections, in the order of their arrival. */
const connections: Socket[] = [];
service.server.on('connection', (socket: Socket) => connections.push(socket));
const ours = await service.organization();
const readOnly = await ours.addKey('read_only');

const JSON_TYPE = 'Content-Type: application/json';

function post(raw: string | Buffer, type = 'application/json', headers: Record<string, string> = {}) {
  return ours.call('POST', '/v1/emails', { raw, headers: { 'content-type': type, ...headers } });
}

describe('Content-Type and Content-Encoding', () => {
  for (const type of [
    ...['text/plain', 'application/jsonx', 'application/ld+json', '*/*', 'application/json, text/plain', ';', ''],
  ]) {
    it(`415 unsupported_media_type for the type ${JSON.stringify(type)}`, async () => {
      assertRefused(await post(JSON.stringify(ours.mail()), type), 415, 'unsupported_media_type');
    });
  }

  for (const type of ['Application/JSON', 'APPLICATION/JSON ; charset="utf-8"', 'application/json;version=1']) {
    it(`202 for the type ${type}`, async () => {
      assert.equal((await post(JSON.stringify(ours.mail()), type)).status, 202);
    });
  }

  for (const encoding of ['gzip', 'BR', 'gzip, identity']) {
    it(`415 unsupported_media_type for the encoding ${encoding}`, async () => {
      const raw = gzipSync(JSON.stringify(ours.mail()));
      const answer = await post(raw, 'application/json', { 'content-encoding': encoding });
      const message = 'the request body must not be compressed; leave out Content-Encoding';
      assertRefused(answer, 415, 'unsupported_media_type', undefined, message);
      assert.equal(answer.headers['accept-encoding'], 'identity');
    });
  }

  it('415 without a type, and 202 for the encoding identity', async () => {
    const raw = JSON.stringify(ours.mail());
    assertRefused(await ours.call('POST', '/v1/emails', { raw }), 415, 'unsupported_media_type');
    assert.equal((await post(raw, 'application/json', { 'content-encoding': 'Identity' })).status, 202);
  });
});

describe('400 invalid_json: body is not valid JSON', () => {
  for (const raw of ['{', ' ', '{"a":1}x', '{"a":"\x01"}', '{"__proto__":1']) {
    it(JSON.stringify(raw), async () => {
      assertRefused(await post(raw), 400, 'invalid_json');
    });
  }

  it('no body', async () => {
    for (const call of [{}, { headers: { 'content-type': 'application/json' } }]) {
      assertRefused(await ours.call('POST', '/v1/emails', call), 400, 'invalid_json');
    }
  });

  it('is reported for unclosed brackets; up to a million closed ones are JSON of a wrong type', async () => {
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
  });

  for (const [raw, message] of [
    ['', 'the request body is empty; it must be a JSON object'],
    ['{"a":[1', 'the request body is not valid JSON: it ends too early'],
    ['{"a":1,}', 'the request body is not valid JSON at line 1, character 8'],
    ['{\n "é": "ü",\n  b: 1}', 'the request body is not valid JSON at line 3, character 3'],
    [`${' '.repeat(200_000)}{x}`, 'the request body is not valid JSON at byte 200002'],
    [Buffer.from('{"a":"\xff"}', 'latin1'), 'the request body must be UTF-8'],
    [Buffer.from(`${' '.repeat(200_000)}\xff`, 'latin1'), 'the request body must be UTF-8'],
  ] as const) {
    it(`the message names the position and the problem: ${message} (${raw.length} bytes)`, async () => {
      assertRefused(await post(raw), 400, 'invalid_json', undefined, message);
    });
  }

  it('202 for a byte order mark, white space and escapes', async () => {
    const raw = JSON.stringify(ours.mail());
    for (const each of [`\ufeff${raw}`, ` \r\n\t${raw}\n`, raw.replace('"subject"', '"\\u0073ubject"')]) {
      const answer = await post(each);
      assert.equal(answer.status, 202, answer.text);
    }
  });
});

describe('413 payload_too_large: request body over 43 MB', () => {
  const padded = (length: number) => JSON.stringify(ours.mail()).padEnd(length, ' ');

  it('accepts 43 MB, to the byte', async () => {
    assert.equal((await post(padded(MAX_BODY_BYTES))).status, 202);
    assertRefused(await post(padded(MAX_BODY_BYTES + 1)), 413, 'payload_too_large');
  });

  for (const length of [MAX_BODY_BYTES + 1, Number.MAX_SAFE_INTEGER, '9'.repeat(18)]) {
    it(`refuses a Content-Length of ${length} before the body arrives`, async () => {
      const request = head('/v1/emails', ours.key, JSON_TYPE, `Content-Length: ${length}`);
      const answer = await sendBytes(service.port, `${request}{`);
      assertRefused(answer, 413, 'payload_too_large');
      assert.equal(answer.closed, true);
    });
  }

  it('refuses a chunked body as soon as it passes the limit', async () => {
    const socket = await connectSocket(service.port);
    const answered = listen(socket);
    socket.write(head('/v1/emails', ours.key, JSON_TYPE, 'Transfer-Encoding: chunked'));
    const written = await writeBody(socket, '{"text":"', 120);
    assertRefused(await answered, 413, 'payload_too_large');
    assert.ok(written > MAX_BODY_BYTES, `refused after ${written} bytes`);
    const { bytesRead } = connections.at(-1) as Socket;
    assert.ok(bytesRead < MAX_BODY_BYTES + 2_000_000, `read ${bytesRead} bytes`);
  });

  it('accepts a chunked body within the limit', async () => {
    const json = JSON.stringify(ours.mail());
    const chunks = Array.from(json, (letter) => `${Buffer.byteLength(letter).toString(16)}\r\n${letter}\r\n`).join('');
    const lines = [JSON_TYPE, 'Transfer-Encoding: chunked'];
    const answer = await sendBytes(service.port, `${head('/v1/emails', ours.key, ...lines)}${chunks}0\r\n\r\n`);
    assert.equal(answer.status, 202, answer.text);
  });
});

describe('the key is checked before the body is read', () => {
  for (const [name, key, status] of [
    ['no key', undefined, 401],
    ['an unknown key', `sw_live_${'0'.repeat(26)}_${'0'.repeat(64)}`, 401],
    ['a key that may not send', readOnly, 403],
  ] as const) {
    for (const framing of ['Content-Length: 40000000', 'Transfer-Encoding: chunked']) {
      it(`${name}, 40 MB, ${framing}: refused before the body arrives`, async () => {
        const answer = await sendBytes(service.port, head('/v1/emails', key, JSON_TYPE, framing));
        assert.deepEqual([answer.status, answer.closed], [status, true]);
      });

      it(`${name}, 40 MB, ${framing}: at most 256 KiB of the body are read`, async () => {
        const socket = await connectSocket(service.port);
        const answered = listen(socket);
        socket.write(head('/v1/emails', key, JSON_TYPE, framing));
        await writeBody(socket, '{"text":"', 40, framing.startsWith('Transfer'));
        assert.equal((await answered).status, status);
        const { bytesRead } = connections.at(-1) as Socket;
        assert.ok(bytesRead <= 262_144, `read ${bytesRead} bytes`);
      });
    }
  }

  it('an HTTP client receives the response although it is still writing', async () => {
    const call = { raw: Buffer.alloc(40_000_000, ' '), headers: { 'content-type': 'application/json' } };
    for (let i = 0; i < 5; i++) assertRefused(await service.call('POST', '/v1/emails', call), 401, 'unauthorized');
  });
});

describe('the connection of a refused request', () => {
  it('is kept after a short body', async () => {
    // The client opens a new connection only when the first one ends.
    const client = new Client(service.url);
    const before = connections.length;
    for (let i = 0; i < 3; i++) {
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

  it('is closed after a long body', async () => {
    const json = ours.mail({ html: 'a'.repeat(100_000) });
    const { headers } = await service.call('POST', '/v1/emails', { key: 'x', json });
    assert.equal(headers['connection'], 'close');
  });

  it('is destroyed although the caller keeps its end open', async () => {
    const socket = await connectSocket(service.port);
    socket.write(head('/v1/emails', undefined, 'Content-Length: 40000000'));
    const accepted = connections.at(-1) as Socket;
    await eventually('the server destroys the connection', () => accepted.destroyed);
    socket.destroy();
  });
});

/** Writes a body of up to this many million bytes while the server reads it. @returns the bytes written */
async function writeBody(socket: Socket, start: string, millions: number, chunked = true): Promise<number> {
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
