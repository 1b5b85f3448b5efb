import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { addDomain } from '../../src/accounts/domains.ts';
import { eventually } from '../support/eventually.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { startApi } from './api-process.ts';
import { assertRefused, type Organization, type Service, startService } from './service.ts';

const MB = 1_048_576;
/** Posts of the largest kind at the same time. */
const TOGETHER = 20;
/** Milliseconds after which a request has come as far as it can, also on a busy machine. */
const ARE_IN = 500;

describe('large bodies', () => {
  let service: Service;
  let org: Organization;
  let other: Organization;
  before(async () => {
    service = await startService({ maxBodyBytes: 4 * MB });
    org = await service.organization();
    other = await service.organization();
  });
  after(() => service.close());
  /** What a test that failed has left open would be in the way of the next one. */
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  /** Sends the head of a request and the first bytes of its body, and waits with the rest. */
  async function begin(headers: string, { key } = org) {
    const socket = connect(service.port, '127.0.0.1');
    sockets.push(socket);
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    socket.write(
      `POST /v1/emails HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${headers}\r\n\r\n`,
    );
    await once(socket, 'connect');
    return { socket, answer: () => answer };
  }

  /** As many as are let in at a time: one organization alone is let in with two. Waits until they certainly are. */
  async function fill(headers: string) {
    const slow = await Promise.all([org, org, other].map((of) => begin(headers, of)));
    await sleep(ARE_IN);
    return slow;
  }

  it('are let in three of the largest at a time; the others wait and are answered, small ones at once', async () => {
    const slow = await fill(`content-length: ${4 * MB}`);
    const waiting = org.send({ text: 'x'.repeat(1_000_000), html: 'x'.repeat(500_000) });
    let answered = false;
    void waiting.then(() => (answered = true));
    await org.sent();
    await sleep(100);
    assert.equal(answered, false);
    slow[0]?.socket.destroy();
    const answer = await waiting;
    assert.equal(answer.status, 202, answer.text);
  });

  it('that are chunked may become as large as any, and wait too', async () => {
    const slow = await fill('transfer-encoding: chunked');
    const fourth = await begin('transfer-encoding: chunked');
    const body = JSON.stringify(org.mail());
    fourth.socket.write(`${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`);
    await sleep(100);
    assert.equal(fourth.answer(), '');
    slow[1]?.socket.destroy();
    await eventually('it is answered', () => fourth.answer().startsWith('HTTP/1.1 202'));
  });

  it('are refused for their key and their length without waiting', async () => {
    await fill(`content-length: ${4 * MB}`);
    const raw = Buffer.alloc(2 * MB, ' ');
    const headers = { 'content-type': 'application/json' };
    assertRefused(await service.call('POST', '/v1/emails', { raw, headers }), 401, 'unauthorized');
    const tooLarge = await service.call('POST', '/v1/emails', {
      key: org.key,
      raw: Buffer.alloc(4 * MB + 1, ' '),
      headers,
    });
    assertRefused(tooLarge, 413, 'payload_too_large');
  });

  it('of one organization, however many, leave room for others', async () => {
    await Promise.all(Array.from({ length: 5 }, () => begin(`content-length: ${4 * MB}`)));
    await sleep(ARE_IN);
    const answer = await other.send({ text: 'x'.repeat(1_000_000), html: 'x'.repeat(500_000) });
    assert.equal(answer.status, 202, answer.text);
  });

  it('of callers who went away hold no place', async () => {
    for (let i = 0; i < 10; i++) {
      const { socket } = await begin(`content-length: ${4 * MB}`);
      await sleep(5);
      socket.destroy();
    }
    const answer = await org.send({ text: 'x'.repeat(1_000_000), html: 'x'.repeat(500_000) });
    assert.equal(answer.status, 202, answer.text);
  });
});

describe('twenty posts of 42 MB at the same time', () => {
  let database: TestDatabase;
  before(async () => {
    database = await testDatabase(2);
  });
  after(() => database.drop());

  it('are all taken, in less than 1 GB', async (t) => {
    const folder = await temporaryFolder(t);
    const api = await startApi({ DATABASE_URL: database.url, ATTACHMENT_STORE: `file:${folder}` });
    t.after(() => api.end());
    const { id, api_key: key } = await createOrganization(database.pool, 'Large');
    await addDomain(database.pool, id, 'large.example', true);
    const content = Buffer.alloc(30 * MB, 'a file').toString('base64');
    const email = { from: 'a@large.example', to: 'b@example.net', subject: 'Large', text: 'x'.repeat(1_000_000) };
    const body = JSON.stringify({ ...email, html: 'x'.repeat(900_000), attachments: [{ filename: 'a.txt', content }] });
    assert.ok(body.length > 42 * MB - 1_000_000, `${body.length} bytes`);

    let peak = 0;
    const watching = setInterval(() => {
      peak = Math.max(peak, Number(execFileSync('ps', ['-o', 'rss=', '-p', String(api.child.pid)])) * 1_024);
    }, 100);
    const answers = await Promise.all(
      Array.from({ length: TOGETHER }, async () => {
        const { statusCode, body: answer } = await request(`${api.url}/v1/emails`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body,
        });
        await answer.dump();
        return statusCode;
      }),
    );
    clearInterval(watching);
    assert.deepEqual(
      answers,
      Array.from({ length: TOGETHER }, () => 202),
    );
    assert.ok(peak > 50 * MB && peak < 1_000 * MB, `${Math.round(peak / MB)} MB`);
    t.diagnostic(`at most ${Math.round(peak / MB)} MB`);
  });
});
