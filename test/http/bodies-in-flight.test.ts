import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folder.ts';
import { post, startApi, watchMemory } from './api-process.ts';
import { assertRefused, useService } from './service.ts';
import { head } from './socket.ts';

const MB = 1_048_576;
const CONCURRENT = 20;
const LARGEST = `content-length: ${4 * MB}`;
const CHUNKED = 'transfer-encoding: chunked';
/** Fields that make a body count as a large one. */
const LARGE = { text: 'x'.repeat(1_000_000), html: 'x'.repeat(500_000) };

const service = await useService({ maxBodyBytes: 4 * MB });
const [org, other] = [await service.organization(), await service.organization()];
let requests = 0;
service.server.on('request', () => requests++);

describe('large bodies', () => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  /** Sends the head of a request and no body. */
  function begin(framing: string, { key } = org) {
    const socket = connect(service.port, '127.0.0.1');
    sockets.push(socket);
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    socket.write(head('/v1/emails', key, 'content-type: application/json', framing));
    return { socket, answer: () => answer };
  }

  /** Sends the heads of requests and waits until each holds or awaits capacity. */
  async function beginAll(framing: string, ...organizations: (typeof org)[]) {
    await Promise.all([org.sent(), other.sent()]);
    const before = requests;
    const begun = organizations.map((each) => begin(framing, each));
    await eventually('the requests arrive', () => requests === before + begun.length);
    // Authentication of the requests before it is over when this one is answered.
    await org.sent();
    return begun;
  }

  /** Holds all capacity: three of the largest bodies, of which one organization may hold two. */
  const fill = (framing: string) => beginAll(framing, org, org, other);

  it('are read three of the largest at a time; others wait, and small ones do not', async () => {
    const begun = await fill(LARGEST);
    let isAnswered = false;
    const waiting = other.send(LARGE).finally(() => (isAnswered = true));
    await org.sent();
    await sleep(100);
    assert.equal(isAnswered, false);
    begun[0]?.socket.destroy();
    const answer = await waiting;
    assert.equal(answer.status, 202, answer.text);
  });

  it('wait also if they are chunked, since their length is unknown', async () => {
    const begun = await fill(CHUNKED);
    const fourth = begin(CHUNKED);
    const body = JSON.stringify(org.mail());
    fourth.socket.write(`${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`);
    await sleep(100);
    assert.equal(fourth.answer(), '');
    begun[1]?.socket.destroy();
    await eventually('the fourth request is answered', () => fourth.answer().startsWith('HTTP/1.1 202'));
  });

  it('are refused for their key and their length without waiting', async () => {
    await fill(LARGEST);
    const headers = { 'content-type': 'application/json' };
    const unauthorized = await service.call('POST', '/v1/emails', { raw: Buffer.alloc(2 * MB, ' '), headers });
    assertRefused(unauthorized, 401, 'unauthorized');
    const tooLarge = await org.call('POST', '/v1/emails', { raw: Buffer.alloc(4 * MB + 1, ' '), headers });
    assertRefused(tooLarge, 413, 'payload_too_large');
  });

  it('of one organization leave capacity for others', async () => {
    const begun = await beginAll(LARGEST, org, org, org, org, org);
    const answer = await other.send(LARGE);
    assert.equal(answer.status, 202, answer.text);
    for (const { socket } of begun) assert.equal(socket.destroyed, false, 'no slow body was ended for it');
  });

  it('of callers that disconnected hold no capacity', async () => {
    for (const { socket } of await beginAll(LARGEST, org, org, org, org, org)) socket.destroy();
    const answer = await org.send(LARGE);
    assert.equal(answer.status, 202, answer.text);
  });
});

it('twenty concurrent posts of 42 MB are accepted in less than 1 GB of memory', async (t) => {
  const folder = await temporaryFolder(t);
  const api = await startApi({ DATABASE_URL: service.databaseUrl, ATTACHMENT_STORE: `file:${folder}` });
  t.after(() => api.end());
  const content = Buffer.alloc(30 * MB, 'a file').toString('base64');
  const email = { from: `a@${org.domain}`, to: 'b@example.net', subject: 'Large', text: 'x'.repeat(1_000_000) };
  const body = JSON.stringify({ ...email, html: 'x'.repeat(900_000), attachments: [{ filename: 'a.txt', content }] });
  assert.ok(body.length > 42 * MB - 1_000_000, `${body.length} bytes`);

  const peakBytes = watchMemory(api);
  const authorization = `Bearer ${org.key}`;
  // On a busy machine those that wait for too long are asked to come again.
  const send = async (): Promise<number> => {
    const status = await post(`${api.url}/v1/emails`, body, { authorization });
    return status === 503 ? send() : status;
  };
  const answers = await Promise.all(Array.from({ length: CONCURRENT }, send));
  assert.deepEqual(answers, Array<number>(CONCURRENT).fill(202));
  assert.ok(peakBytes() > 50 * MB && peakBytes() < 1_000 * MB, `${Math.round(peakBytes() / MB)} MB`);
});
