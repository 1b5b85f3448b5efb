import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { readAddresses } from '../../src/dashboard/address-list.ts';

describe('a list of addresses', () => {
  it('is read from lines with one or several addresses, with names, quotes and invalid quotes', async () => {
    const lines = [
      '"Doe, Jane" <jane@example.com>',
      '"bob@example.com";carol@example.com',
      "x,'+eve@example.com\tme@b",
    ];
    const { addresses, refused } = await readAddresses([...lines, '"a@b.example', 'no address'].join('\n'));
    assert.deepEqual(addresses, ['jane@example.com', 'bob@example.com', 'carol@example.com', '+eve@example.com']);
    assert.deepEqual(
      refused.map(({ line, text }) => [line, text]),
      [
        [3, 'me@b'],
        [4, '"a@b.example'],
        [5, 'no address'],
      ],
    );
  });

  it('is read from the column of a heading, whose cells may hold line breaks', async () => {
    const rows = [
      'Name;Email',
      '"Ada\nLovelace";ada@example.com',
      `"${'é'.repeat(20_000)}";bob@example.com`,
      ';nobody',
    ];
    const { addresses, refused } = await readAddresses(rows.join('\n'));
    assert.deepEqual(addresses, ['ada@example.com', 'bob@example.com']);
    assert.deepEqual(
      refused.map(({ line, text }) => [line, text]),
      [[5, 'nobody']],
    );
    await assert.rejects(readAddresses('email\n"a'), /line \d+: has a quotation mark in a wrong place/);
  });

  it('of lines that are no addresses is refused before they fill the memory', async () => {
    await assert.rejects(readAddresses('a\n'.repeat(20_001)), /has more than 20000 invalid addresses/);
    const { addresses, refused } = await readAddresses(`${'a,'.repeat(500_001)}\nbob@example.com`);
    assert.deepEqual(addresses, ['bob@example.com']);
    assert.deepEqual(
      refused.map(({ line, problem }) => [line, problem]),
      [[1, 'is too long; write one address per line']],
    );
  });

  for (const [kind, text] of [
    ['lines', '"x,@\n'.repeat(10_000)],
    ['blank lines', '\n'.repeat(3_000_000)],
    ['addresses in one line', `"a",${'b@example.com,'.repeat(50_000)}`],
    ['values with a heading', `email\n${'"a",b\n'.repeat(20_000)}`],
  ] as const) {
    it(`lets other work run while it reads many ${kind}`, async () => {
      const read = readAddresses(text).then(() => 'read' as const);
      let turns = 0;
      while ((await Promise.race([read, setImmediate('waiting' as const)])) === 'waiting') turns++;
      assert.ok(turns > 2, String(turns));
    });
  }
});
