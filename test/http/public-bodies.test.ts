import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { useDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folder.ts';
import { startApi, watchMemory } from './api-process.ts';
import { POSTMARK_AUTHORIZATION, startService, useService } from './service.ts';
import { connectSocket, head, sendBytes } from './socket.ts';

const MB = 1_048_576;
const BASIC = `Authorization: ${POSTMARK_AUTHORIZATION}`;
const META = `X-Hub-Signature-256: sha256=${'0'.repeat(64)}`;
const TWILIO = `X-Twilio-Signature: ${'A'.repeat(27)}=`;
const FORM = 'Content-Type: application/x-www-form-urlencoded';

/** Routes of each kind that read a body without an API key, with the headers that they require before they read the body. */
const PUBLIC_POSTS: readonly (readonly [path: string, ...headers: string[]])[] = [
  ['/unsubscribe/x', FORM],
  ['/callbacks/postmark', 'Content-Type: application/json', BASIC],
  ['/callbacks/twilio', TWILIO],
  ['/callbacks/meta', META],
  ['/dashboard/sign-in', FORM],
  ['/dashboard/sign-out', FORM],
  ['/dashboard/invitations/x', FORM],
];

const database = await useDatabase(2);
const service = await useService();
const org = await service.organization();
const LARGE = { text: 'x'.repeat(999_000), html: 'x'.repeat(999_000) };

describe('a request body without an API key', () => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  async function open(start: string, port = service.port): Promise<{ socket: Socket; answer: () => string }> {
    const socket = await connectSocket(port);
    sockets.push(socket);
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    socket.write(start);
    return { socket, answer: () => answer };
  }

  for (const [path, ...headers] of PUBLIC_POSTS) {
    it(`held open four times at ${path} does not delay a send of 2 MB`, async () => {
      const held = await Promise.all(
        Array.from({ length: 4 }, () =>
          open(head(path, undefined, 'Transfer-Encoding: chunked', ...headers) + '1\r\na\r\n'),
        ),
      );
      // The server answers this request after it has read what has arrived of the four.
      await org.sent();
      const sent = await org.send(LARGE);
      assert.equal(sent.status, 202, sent.text);
      for (const each of held) assert.equal(each.answer(), '', 'it is still held open');
    });
  }

  it('that exceeds the share of its network gets 503 and leaves capacity for a send of 2 MB', async (t) => {
    // On another service: connections of earlier tests may still use a part of the share.
    const own = await startService();
    t.after(() => own.close());
    const start = head('/callbacks/meta', undefined, 'Content-Length: 3145728', META);
    const held = await Promise.all(Array.from({ length: 20 }, () => open(start + 'a', own.port)));
    const sent = await (await own.organization()).send(LARGE);
    assert.equal(sent.status, 202, sent.text);
    // Two of 3 MiB are within the share. On a busy machine they may end as too slow, and two others take their place.
    await eventually(
      'those over the share are answered',
      () => held.filter(({ answer }) => answer() === '').length <= 2,
    );
    const refused = held.filter(({ answer }) => answer().startsWith('HTTP/1.1 503')).length;
    assert.ok(refused >= 12, `${refused} refused`);
    for (const { socket } of held) socket.destroy();
  });

  it('that arrives too slowly gets 408; one with a key may be slow while no other request waits', async () => {
    const keyed = JSON.stringify(org.mail({ text: 'x'.repeat(100_000) }));
    const slow = await open(
      head('/v1/emails', org.key, 'Content-Type: application/json', `Content-Length: ${keyed.length}`) +
        keyed.slice(0, 1),
    );
    const dripping = await Promise.all(
      PUBLIC_POSTS.map(([path, ...headers]) =>
        open(head(path, undefined, 'Transfer-Encoding: chunked', ...headers) + '1\r\na\r\n'),
      ),
    );
    const drip = setInterval(() => {
      for (const { socket, answer } of dripping) if (answer() === '') socket.write('1\r\na\r\n');
    }, 200);
    try {
      await eventually('all are refused', () => dripping.every(({ answer }) => answer() !== ''));
    } finally {
      clearInterval(drip);
    }
    for (const { answer } of dripping) assert.match(answer(), /^HTTP\/1\.1 408 /);
    assert.equal(slow.answer(), '');
    slow.socket.write(keyed.slice(1));
    await eventually('the slow one is answered', () => slow.answer().startsWith('HTTP/1.1 202'));
  });
});

describe('a callback whose signature header is missing or malformed', () => {
  for (const [path, ...headers] of [
    ['/callbacks/meta'],
    ['/callbacks/meta', 'X-Hub-Signature-256: sha256=00'],
    ['/callbacks/meta', `X-Hub-Signature-256: sha1=${'0'.repeat(64)}`],
    ['/callbacks/twilio'],
    ['/callbacks/twilio', 'X-Twilio-Signature: x'],
    ['/callbacks/postmark'],
    ['/callbacks/postmark', 'Authorization: Basic eDp5'],
  ] as const) {
    it(`gets 401 before its body arrives: ${[path, ...headers].join(', ')}`, async () => {
      const { status } = await sendBytes(service.port, head(path, undefined, 'Content-Length: 50000', ...headers));
      assert.equal(status, 401);
    });
  }
});

describe('1,400 posts of 1 MiB to /callbacks/meta that never end', () => {
  const POSTS = 1_400;

  it('leave the API below 500 MB', async (t) => {
    const folder = await temporaryFolder(t);
    const api = await startApi({
      DATABASE_URL: database.url,
      ATTACHMENT_STORE: `file:${folder}`,
      META_APP_SECRET: 'a secret of Meta',
    });
    t.after(() => api.end('SIGKILL'));
    const peakBytes = watchMemory(api);
    const port = Number(new URL(api.url).port);
    const body = Buffer.alloc(MB - 1, 'a');
    let closed = 0;
    let written = 0;
    const sockets = Array.from({ length: POSTS }, (_, i) => {
      // From many addresses, since one network has a smaller share.
      const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (i % 200)}` });
      socket.on('error', () => undefined);
      socket.once('close', () => closed++);
      socket.write(head('/callbacks/meta', undefined, `Content-Length: ${MB}`, META));
      socket.write(body, (error) => {
        if (!error) written++;
      });
      return socket;
    });
    t.after(() => {
      for (const socket of sockets) socket.destroy();
    });
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    await eventually('each post is refused or has been sent', () => closed + written >= POSTS);
    // Longer than a post waits for capacity.
    await sleep(7_000);
    assert.ok(peakBytes() > 50 * MB && peakBytes() < 500 * MB, `${Math.round(peakBytes() / MB)} MB`);
  });
});
