import assert from 'node:assert/strict';
import { after, beforeEach, describe, test } from 'node:test';
import { makeDns } from '../../src/providers/dns.ts';
import { startDnsServer } from '../support/dns-server.ts';

const server = await startDnsServer();
after(() => server.close());
beforeEach(() => {
  server.fail(undefined);
  server.questions.length = 0;
});

const dns = () => makeDns([server.address], 600);

describe('DNS', () => {
  test('returns all TXT records, with their parts joined', async () => {
    const long = 'x'.repeat(255) + 'y'.repeat(255) + 'z';
    server.txt('long.example', long, 'second', 'dritter – ü');
    const answer = await dns().txt('long.example');
    assert.ok(answer.kind === 'found', answer.kind);
    assert.deepEqual([...answer.values].sort(), ['dritter – ü', 'second', long]);
  });

  test('returns the target of a CNAME', async () => {
    server.cname('alias.example', 'pm.mtasv.net');
    assert.deepEqual(await dns().cname('alias.example'), { kind: 'found', values: ['pm.mtasv.net'] });
  });

  test('returns none for a missing name and for a name without this type', async () => {
    server.cname('other.example', 'x.example');
    for (const name of ['absent.example', 'other.example']) {
      assert.deepEqual(await dns().txt(name), { kind: 'none' }, name);
    }
  });

  for (const [fault, reason] of [
    ['SERVFAIL', 'the name servers of the domain fail'],
    ['REFUSED', 'the name servers refuse to answer'],
    ['silent', 'no answer in time'],
  ] as const) {
    test(`returns unknown for ${fault}`, async () => {
      server.txt('there.example', 'x');
      server.fail(fault, 'there.example');
      assert.deepEqual(await dns().txt('there.example'), { kind: 'unknown', reason });
      server.fail(undefined, 'there.example');
      assert.equal((await dns().txt('there.example')).kind, 'found');
    });
  }

  test('asks the next server when the first one is unreachable', async () => {
    const gone = await startDnsServer();
    await gone.close();
    server.txt('second.example', 'x');
    const both = makeDns([gone.address, server.address], 6_000);
    assert.deepEqual(await both.txt('second.example'), { kind: 'found', values: ['x'] });
  });
});
