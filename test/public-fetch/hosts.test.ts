import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { makePublicFetch } from '../../src/public-fetch/fetch.ts';
import { parseRanges } from '../../src/lib/ip-ranges.ts';
import { mayReach } from '../../src/public-fetch/public-address.ts';
import { parseFetchableUrl } from '../../src/public-fetch/public-url.ts';
import { Unfetchable } from '../../src/public-fetch/unfetchable.ts';
import { OWN_NAMES, PRIVATE_LITERALS } from './private-hosts.ts';
import { startPrivateServer, names, REACHABLE, site } from './web.ts';

const NOT_PUBLIC = 'its host cannot be found on the public internet';
const budget = () => ({ left: 1_000_000 });

const HOSTS = [...PRIVATE_LITERALS, ...OWN_NAMES, 'private.test', 'mixed.test', 'mapped.test', 'unknown.test'];

test('no host on our side is reached, in whatever spelling', async (t) => {
  const seen = await startPrivateServer(t);
  const { resolve } = names({
    localhost: [['127.0.0.1', '::1']],
    'localhost.': [['127.0.0.1']],
    'private.test': [['10.0.0.1']],
    'mixed.test': [['93.184.215.14', '127.0.0.1']],
    'mapped.test': [['::ffff:127.0.0.1']],
  });
  const fetch = makePublicFetch({ allowedCidrs: [], resolve });
  for (const host of HOSTS) {
    for (const url of [`http://${host}:${seen.port}/x`, `http://user:pass@${host}:${seen.port}/`]) {
      await assert.rejects(fetch(url, budget()), { name: 'Unfetchable', message: NOT_PUBLIC }, url);
    }
  }
  assert.equal(seen.connections, 0);
});

test('the names of this machine are found by its own resolver, and refused', async (t) => {
  const seen = await startPrivateServer(t);
  const fetch = makePublicFetch({ allowedCidrs: [] });
  await assert.rejects(fetch(`http://localhost:${seen.port}/`, budget()), { message: NOT_PUBLIC });
  await assert.rejects(fetch(`http://no-such-host.invalid:${seen.port}/`, budget()), { message: NOT_PUBLIC });
  assert.equal(seen.connections, 0);
});

test('a name is resolved once for each request: a later answer is ignored', async (t) => {
  const seen = await startPrivateServer(t);
  const web = await site(t, (_, response) => response.end('public'));
  const { asked, resolve } = names({ 'rebinds.test': [[REACHABLE], ['127.0.0.1']] });
  const fetch = makePublicFetch({ allowedCidrs: [`${REACHABLE}/32`], resolve });
  assert.equal(String(await fetch(`http://rebinds.test:${web.port}/`, budget())), 'public');
  assert.deepEqual(asked, ['rebinds.test']);
  assert.equal(web.requests[0]?.headers['host'], `rebinds.test:${web.port}`);
  await assert.rejects(fetch(`http://rebinds.test:${seen.port}/`, budget()), { message: NOT_PUBLIC });
  assert.equal(seen.connections, 0);
});

test('a name that resolves to nothing, and one that takes too long to resolve', async () => {
  const nothing = makePublicFetch({ allowedCidrs: [], resolve: async () => [] });
  await assert.rejects(nothing('http://empty.test/', budget()), { message: NOT_PUBLIC });
  const never = makePublicFetch({ allowedCidrs: [], resolve: () => new Promise(() => undefined) }, 100);
  const held = setTimeout(() => undefined, 10_000);
  await assert.rejects(never('http://slow.test/', budget()), { message: 'it takes longer than 0.1 seconds' });
  clearTimeout(held);
});

test('what the operator allows is reached, as a range, an address, and in IPv6 clothes', () => {
  const allowed = parseRanges(['10.1.0.0/16', '192.168.5.5', 'fd00::/8']);
  for (const address of ['10.1.2.3', '192.168.5.5', 'fd12::1', '::ffff:10.1.2.3', '8.8.8.8', '2606:4700::1111']) {
    assert.ok(mayReach(address, allowed), address);
  }
  for (const address of ['10.2.0.1', '192.168.5.6', 'fc00::1', '127.0.0.1', '::ffff:10.2.0.1', '::1', '::a01:203']) {
    assert.ok(!mayReach(address, allowed), address);
  }
  for (const text of ['', 'x', '10.0.0.0/33', '10.0.0.0/', '300.1.1.1', 'fd00::/129', 'localhost']) {
    assert.throws(() => parseRanges([text]), text);
  }
});

describe('a URL', () => {
  const problem = (text: string): string | undefined => {
    try {
      parseFetchableUrl(text, []);
      return undefined;
    } catch (error) {
      assert.ok(error instanceof Unfetchable);
      return error.message;
    }
  };

  it('may name any port but those of mail, databases and Temporal', () => {
    for (const port of ['', ':80', ':443', ':8080', ':8443', ':3000', ':9000', ':65535']) {
      assert.equal(problem(`http://example.com${port}/`), undefined, port);
    }
    for (const port of [25, 110, 143, 465, 587, 993, 995, 1433, 1521, 3306, 5432, 6379, 7233, 11211, 27017]) {
      assert.equal(problem(`http://example.com:${port}/`), `its port ${port} is not one of web servers`);
      assert.equal(problem(`https://8.8.8.8:${port}/`), `its port ${port} is not one of web servers`);
    }
  });

  it('is http or https', () => {
    for (const url of [
      'file:///etc/passwd',
      'ftp://example.com/',
      'gopher://example.com/',
      'data:,x',
      'javascript:1',
    ]) {
      assert.equal(problem(url), 'it is not an http or https URL', url);
    }
    for (const url of ['', 'example.com', 'http://', 'http://a b/', 'http://[::1/'])
      assert.equal(problem(url), 'it is not a URL');
  });

  it('loses its user name, password and fragment', () => {
    assert.equal(parseFetchableUrl('http://user:pass@example.com/a?b=c#d', []).href, 'http://example.com/a?b=c');
  });
});
