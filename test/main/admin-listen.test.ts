import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, describe, it, type TestContext } from 'node:test';
import getPort from 'get-port';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { request } from 'undici';
import { drainEndpoint } from '../support/webhooks.ts';
import { webhookSeal } from '../../src/accounts/webhooks.ts';
import { makePublicPost } from '../../src/public-fetch/post.ts';
import { newSecret, signedHeaders } from '../../src/webhooks/signature.ts';
import { SECRET_KEY, startService, useService } from '../http/service.ts';
import { eventually } from '../support/eventually.ts';
import { assertFailed, command, runProcess, startCommand } from './command-line.ts';

const LOOPBACK = ['127.0.0.0/8'];

interface Hit {
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Endpoint {
  readonly id: string;
  readonly url: string;
}

const service = await useService({ webhookAllowCidrs: LOOPBACK });
const ours = await service.organization();
let local: Server;
let target: string;
let answer: (response: ServerResponse) => void;
const hits: Hit[] = [];
before(async () => {
  local = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      hits.push({ url: incoming.url, headers: incoming.headers, body: Buffer.concat(chunks).toString() });
      answer(response);
    });
  });
  local.listen(0, '127.0.0.1');
  await once(local, 'listening');
  target = `http://127.0.0.1:${(local.address() as AddressInfo).port}/hook?shop=1`;
});
afterEach(() => hits.splice(0));
after(() => {
  local.closeAllConnections();
  local.close();
});

const settings = () => ({ SENDWRIGHT_URL: service.url, SENDWRIGHT_API_KEY: ours.key });

/** The bytes of a secret as the API shows it. */
const readSecret = (shown: string) => Buffer.from(shown.slice('whsec_'.length), 'base64');

async function endpoints(): Promise<Endpoint[]> {
  return ((await ours.call('GET', '/v1/webhooks')).body as { webhooks: Endpoint[] }).webhooks;
}

async function assertDeleted(id: string): Promise<void> {
  assert.ok(!(await endpoints()).some((endpoint) => endpoint.id === id));
}

/** Starts the command. @returns its endpoint and the printed secret */
async function listening(t: TestContext, ...more: string[]) {
  const running = startCommand(['webhooks', 'listen', '--forward-to', target, ...more], settings());
  t.after(() => running.child.kill('SIGKILL'));
  const [, id, secret] = await eventually(
    'the endpoint is printed',
    () => /Endpoint (wh_\w+) .* secret is (whsec_\S+)/.exec(running.err()) ?? undefined,
    30_000,
  );
  const endpoint = (await endpoints()).find((each) => each.id === id);
  assert.ok(endpoint && secret, running.err());
  const stop = async (signal: NodeJS.Signals) => {
    running.child.kill(signal);
    return running.ended;
  };
  const lines = () =>
    running
      .out()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { ...running, endpoint, secret, stop, lines };
}

/** Posts the due deliveries of an endpoint, as the worker does. */
async function deliver(id: string): Promise<void> {
  const deps = {
    pool: service.pool,
    seal: webhookSeal(SECRET_KEY),
    connectToEndpoint: makePublicPost({ allowedCidrs: LOOPBACK }),
    idleTimeoutMs: 300,
    stopping: new AbortController().signal,
    log: pino({ level: 'silent' }),
  };
  await drainEndpoint(deps, id);
}

async function attemptsOf(id: string): Promise<Record<string, unknown>[]> {
  const list = await ours.call('GET', `/v1/webhooks/${id}/deliveries`);
  const [delivery] = (list.body as { deliveries: { id: string }[] }).deliveries;
  const whole = await ours.call('GET', `/v1/webhooks/${id}/deliveries/${delivery?.id}`);
  return (whole.body as { attempts: Record<string, unknown>[] }).attempts;
}

describe('webhooks listen', () => {
  it('forwards requests byte for byte, returns the answer, and deletes its endpoint', async (t) => {
    answer = (response) => response.writeHead(202, { 'content-type': 'text/plain' }).end('noted');
    const { endpoint, secret, lines, stop, err } = await listening(t, '--event', 'email.queued');
    assert.match(endpoint.url, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}$/);
    const email = await ours.sent({ subject: 'Grüße 👋' });
    await deliver(endpoint.id);

    const [hit, ...others] = hits;
    assert.ok(hit && others.length === 0, `${hits.length} hits`);
    assert.equal(hit.url, '/hook?shop=1');
    const payload = new Webhook(secret).verify(hit.body, hit.headers as Record<string, string>) as {
      type: string;
      data: Record<string, unknown>;
    };
    assert.deepEqual([payload.type, payload.data['emailId']], ['email.queued', email]);
    assert.equal(hit.headers['service-signature'], hit.headers['webhook-signature']);
    assert.deepEqual([hit.headers['user-agent'], hit.headers.host], ['Sendwright', new URL(target).host]);

    const [attempt] = await attemptsOf(endpoint.id);
    assert.deepEqual([attempt?.['status_code'], attempt?.['response']], [202, 'noted']);
    const [line] = await eventually('a line is printed', () => (lines().length > 0 ? lines() : undefined));
    assert.deepEqual(Object.keys(line ?? {}), ['at', 'id', 'type', 'status', 'ms']);
    assert.deepEqual(
      [line?.['id'], line?.['type'], line?.['status']],
      [hit.headers['webhook-id'], 'email.queued', 202],
    );

    assert.equal(await stop('SIGINT'), 0);
    assert.ok(err().includes(`Endpoint ${endpoint.id} is deleted.`), err());
    await assertDeleted(endpoint.id);
  });

  it('does not forward a request without a recent signature of the service', async (t) => {
    answer = (response) => response.end();
    const { endpoint, secret, lines, stop } = await listening(t);
    const body = '{"type":"email.sent"}';
    const post = async (headers: Record<string, string>, url = endpoint.url) => {
      const response = await request(url, { method: 'POST', headers, body });
      await response.body.dump();
      return response.statusCode;
    };
    assert.equal(await post({}), 401);
    assert.equal(await post(signedHeaders('evt_1', Date.now(), body, [newSecret()])), 401);
    assert.equal(await post(signedHeaders('evt_1', Date.now() - 600_000, body, [readSecret(secret)])), 401);
    assert.equal(await post(signedHeaders('evt_1', Date.now(), `${body} `, [readSecret(secret)])), 401);
    assert.equal(await post(signedHeaders('evt_1', Date.now(), body, [readSecret(secret)]), `${endpoint.url}x`), 404);
    assert.deepEqual(hits, []);
    assert.equal(await post(signedHeaders('evt_1', Date.now(), body, [readSecret(secret)])), 200);
    assert.equal(hits.length, 1);
    await eventually('five lines are printed', () => lines().length === 5);
    assert.match(String(lines()[0]?.['error']), /signature/);
    assert.equal(await stop('SIGTERM'), 0);
    await assertDeleted(endpoint.id);
  });

  it('answers 502 and prints the reason if the target does not answer', async (t) => {
    const { endpoint, secret, lines, stop } = await listening(t, '--forward-to', 'http://127.0.0.1:9/');
    const headers = signedHeaders('evt_1', Date.now(), '{}', [readSecret(secret)]);
    const response = await request(endpoint.url, { method: 'POST', headers, body: '{}' });
    assert.equal(response.statusCode, 502);
    await response.body.dump();
    const [line] = await eventually('a line is printed', () => (lines().length > 0 ? lines() : undefined));
    assert.equal(line?.['error'], 'http://127.0.0.1:9/ does not answer: ECONNREFUSED');
    assert.equal(await stop('SIGHUP'), 0);
    await assertDeleted(endpoint.id);
  });

  it('deletes its endpoint after its standard output was closed', async (t) => {
    const { child, endpoint, secret, ended } = await listening(t, '--forward-to', 'http://127.0.0.1:9/');
    child.stdout?.destroy();
    const headers = signedHeaders('evt_1', Date.now(), '{}', [readSecret(secret)]);
    await (await request(endpoint.url, { method: 'POST', headers, body: '{}' })).body.dump();
    assert.equal(await ended, 0);
    await assertDeleted(endpoint.id);
  });

  it('registers the address of a tunnel', async (t) => {
    const port = await getPort();
    const more = ['--public-url', 'https://tunnel.example.com/base/', '--port', String(port)];
    const { endpoint, secret, stop } = await listening(t, ...more);
    assert.match(endpoint.url, /^https:\/\/tunnel\.example\.com\/base\/[0-9a-f]{32}$/);
    answer = (response) => response.writeHead(204).end();
    const headers = signedHeaders('evt_1', Date.now(), '{}', [readSecret(secret)]);
    const here = `http://127.0.0.1:${port}${new URL(endpoint.url).pathname}`;
    assert.equal((await request(here, { method: 'POST', headers, body: '{}' })).statusCode, 204);
    assert.equal(await stop('SIGINT'), 0);
  });

  it('fails without an endpoint if the service may not post to this machine', async () => {
    const elsewhere = await startService();
    try {
      const { key } = await elsewhere.organization();
      const env = { SENDWRIGHT_URL: elsewhere.url, SENDWRIGHT_API_KEY: key };
      const outcome = await runProcess(['webhooks', 'listen', '--forward-to', target], env);
      assertFailed(outcome, /^url: .*does not post to this machine; give --public-url/);
      const listed = await elsewhere.call('GET', '/v1/webhooks', { key });
      assert.deepEqual((listed.body as { webhooks: unknown }).webhooks, []);
    } finally {
      await elsewhere.close();
    }
  });

  const forward = ['--forward-to', 'http://127.0.0.1:9'];
  for (const [args, sentence] of [
    [['--forward-to', 'localhost:3000'], "option '--forward-to <url>' argument 'localhost:3000' is invalid. "],
    [[...forward, '--port', '0'], "option '--port <port>' argument '0' is invalid. Allowed: 1 to 65535."],
    [[...forward, '--public-url', 'https://x.example'], '--port is missing: '],
  ] as const) {
    it(`refuses ${args.join(' ')}`, async () => {
      const { code, err } = await command(['webhooks', 'listen', ...args], settings());
      assert.ok(code === 2 && err.startsWith(sentence), err);
    });
  }
});
