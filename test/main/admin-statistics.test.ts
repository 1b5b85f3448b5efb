import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bodyOf, inFuture, useService } from '../http/service.ts';
import { assertFailed, command, printed } from './command-line.ts';

const service = await useService();
const ours = await service.organization();
const settings = { SENDWRIGHT_URL: service.url, SENDWRIGHT_API_KEY: ours.key };

interface Statistics {
  readonly step: string;
  readonly series: readonly { readonly key: string; readonly totals: Readonly<Record<string, number>> }[];
}

describe('stats', () => {
  it('prints the statistics of the last 24 hours without options', async () => {
    await ours.sent({ tags: [{ name: 'kind', value: 'receipt' }] });
    const { step, series } = await printed<Statistics>(['stats'], settings);
    assert.equal(step, 'hour');
    assert.deepEqual(
      series.map(({ key, totals }) => [key, totals['accepted']]),
      [['all', 1]],
    );
  });

  it('has the parameters of the API', async () => {
    const [from, to] = [inFuture({ days: -10 }), inFuture({ days: 1 })];
    for (const [query, expected] of [
      [{ from, to, step: 'day', by: 'tag:kind' }, ['receipt']],
      [{ from, to, step: 'day', by: 'domain', channel: 'email' }, [ours.domain]],
      [{ from, to: inFuture({ days: -9 }), by: 'domain' }, []],
      [{ from, to, channel: 'sms', by: 'key' }, []],
    ] as const) {
      const args = Object.entries(query).flatMap(([name, value]) => [`--${name}`, value]);
      const statistics = await printed<Statistics>(['stats', ...args], settings);
      const path = `/v1/stats?${new URLSearchParams(query).toString()}`;
      assert.deepEqual(statistics, bodyOf(await ours.call('GET', path), 200));
      const keys = statistics.series.map(({ key }) => key);
      assert.deepEqual(keys, expected, path);
    }
  });

  for (const [option, value] of [
    ['from', 'yesterday'],
    ['to', '2026-03-01'],
    ['step', 'week'],
    ['by', 'color'],
    ['channel', 'fax'],
  ] as const) {
    it(`prints the error message of the API about --${option} ${value}`, async () => {
      const answer = await ours.call('GET', `/v1/stats?${option}=${value}`);
      const { error } = bodyOf<{ error: { message: string } }>(answer, 422);
      assertFailed(await command(['stats', `--${option}`, value], settings), error.message);
    });
  }
});
