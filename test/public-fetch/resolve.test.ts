import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { lookup } from 'node:dns/promises';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { makePublicFetch } from '../../src/public-fetch/fetch.ts';
import { makePublicPost } from '../../src/public-fetch/post.ts';
import { makeResolver, type ResolveHost } from '../../src/public-fetch/resolve.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folder.ts';
import { REACHABLE, site } from './web.ts';

const NOT_PUBLIC = 'its host cannot be found on the public internet';
const ALLOWED = [`${REACHABLE}/32`];

let dns: DnsServer;
before(async () => {
  dns = await startDnsServer();
});
beforeEach(() => {
  dns.questions.length = 0;
});
after(() => dns.close());

const names = (): string[] => [...new Set(dns.questions.map((question) => question.split(' ')[1] as string))];
const budget = (holder: string) => ({ left: 1_000_000, holder });

describe('a host name', () => {
  const never = new AbortController().signal;
  const resolver = (options: Partial<Parameters<typeof makeResolver>[0]> = {}) =>
    makeResolver({ servers: [dns.address], hasSearchList: false, ...options });

  it('has the addresses of both families that DNS has for it', async () => {
    dns.addresses('both.example', '192.0.2.1', '192.0.2.2', '2001:db8::1');
    dns.addresses('six.example', '2001:db8::1');
    const resolve = resolver();
    const both = await resolve('both.example', never);
    assert.deepEqual(both.map(({ address }) => address).sort(), ['192.0.2.1', '192.0.2.2', '2001:db8::1']);
    assert.deepEqual(await resolve('six.example', never), [{ address: '2001:db8::1', family: 6 }]);
    assert.deepEqual(await resolve('six.example.', never), [{ address: '2001:db8::1', family: 6 }]);
  });

  it('is rejected when it does not exist, has no address, or its servers fail', async () => {
    dns.txt('text.example', 'x');
    dns.fail('SERVFAIL', 'fails.example');
    for (const name of ['none.example', 'text.example', 'fails.example']) {
      await assert.rejects(resolver()(name, never), name);
    }
  });

  it('in the hosts file, or localhost, is not resolved by DNS', async (t) => {
    const hostsFile = join(await temporaryFolder(t), 'hosts');
    await writeFile(hostsFile, '# comment\n10.0.0.7 Inner inner.lan # and more\n::7\tinner\nnonsense inner\n\n');
    const resolve = resolver({ hostsFile });
    assert.deepEqual(await resolve('inner', never), [
      { address: '10.0.0.7', family: 4 },
      { address: '::7', family: 6 },
    ]);
    assert.deepEqual(await resolve('INNER.lan.', never), [{ address: '10.0.0.7', family: 4 }]);
    for (const name of ['localhost', 'localhost.', 'a.localhost']) {
      const addresses = await resolve(name, never);
      assert.deepEqual(addresses.map(({ address }) => address).sort(), ['127.0.0.1', '::1'], name);
    }
    assert.deepEqual(dns.questions, []);
    const fetch = makePublicFetch({ allowedCidrs: [], resolver: { servers: [dns.address], hostsFile } });
    for (const name of ['inner', 'localhost', 'a.localhost']) {
      await assert.rejects(fetch(`http://${name}/`, budget('a')), { message: NOT_PUBLIC }, name);
    }
  });

  it('is looked for in the search list where internal names are allowed, and not elsewhere', async (t) => {
    const resolvConf = join(await temporaryFolder(t), 'resolv.conf');
    await writeFile(resolvConf, 'nameserver 192.0.2.53\nsearch one.internal two.internal\noptions ndots:5\n');
    dns.addresses('service.two.internal', '10.0.0.8');
    const resolve = resolver({ resolvConf, hasSearchList: true });
    assert.deepEqual(await resolve('service', never), [{ address: '10.0.0.8', family: 4 }]);
    await assert.rejects(resolve('service.', never));
    await assert.rejects(resolver({ resolvConf })('service', never));
  });

  it('whose servers never answer is given up, and a canceled look-up immediately', async () => {
    dns.fail('silent', 'silent.example');
    await assert.rejects(resolver()('silent.example', never));
    const cancelled = new AbortController();
    const pending = resolver()('silent.example', cancelled.signal);
    cancelled.abort();
    await assert.rejects(pending);
  });
});

describe('names whose servers never answer', () => {
  const neverResolves = (_name: string, signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });

  it('delay neither the lookups of another organization nor those of the process', async (t) => {
    const web = await site(t, (_, response) => response.end('here'));
    dns.addresses('healthy.example', REACHABLE);
    for (let i = 0; i < 1_000; i++) dns.fail('silent', `n${i}.example`);
    const resolver = { servers: [dns.address] };
    const fetch = makePublicFetch({ allowedCidrs: ALLOWED, resolver });
    const ending = new AbortController();
    const outcomes: string[] = [];
    const slow = Array.from({ length: 1_000 }, (_, i) =>
      fetch(`http://n${i}.example/`, budget('slow'), ending.signal).catch((error: unknown) =>
        outcomes.push((error as Error).message),
      ),
    );
    await eventually('the first are asked for', () => names().length >= 4);
    const healthy = await fetch(`http://healthy.example:${web.port}/`, budget('other'));
    assert.equal(String(healthy), 'here');
    await lookup('localhost');
    const line = makePublicPost({ allowedCidrs: ALLOWED, resolver })(`http://healthy.example:${web.port}/`, 1, 10);
    t.after(line.close);
    assert.equal((await line.post({}, 'x')).status, 200);
    const slowNames = names().filter((name) => name !== 'healthy.example');
    assert.equal(slowNames.length, 4, 'one organization resolves four at a time');
    assert.deepEqual(outcomes, [], 'the slow ones still wait');
    ending.abort(new Error('over'));
    await Promise.all(slow);
  });

  it('leave the other fetches of the same organization an error that is worth trying again', async () => {
    const fetch = makePublicFetch({ allowedCidrs: ALLOWED, resolve: neverResolves });
    const ending = new AbortController();
    const slow = Array.from({ length: 4 }, (_, i) => fetch(`http://m${i}.example/`, budget('slow'), ending.signal));
    const ended = Promise.allSettled(slow);
    await assert.rejects(fetch('http://m4.example/', budget('slow')), { code: 'unavailable' });
    ending.abort(new Error('over'));
    for (const { status } of await ended) assert.equal(status, 'rejected');
  });

  it('do not delay the first post to another endpoint of the same worker', async (t) => {
    const web = await site(t, (_, response) => response.end());
    const resolve: ResolveHost = async (name, signal) =>
      name === 'healthy.example' ? [{ address: REACHABLE, family: 4 }] : neverResolves(name, signal);
    const connectTo = makePublicPost({ allowedCidrs: ALLOWED, resolve }, 3_000);
    const slow = Array.from({ length: 499 }, (_, i) => connectTo(`https://p${i}.example/`, 1, 10).post({}, 'x'));
    const ended = Promise.allSettled(slow);
    const line = connectTo(`http://healthy.example:${web.port}/`, 1, 10);
    t.after(line.close);
    const first = await Promise.race([line.post({}, 'x'), ...slow]);
    assert.equal(first.status, 200);
    for (const { status } of await ended) assert.equal(status, 'rejected');
  });
});
