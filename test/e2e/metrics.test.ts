import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { describe, test, type TestContext } from 'node:test';
import getPort from 'get-port';
import { parse } from 'yaml';
import type { DevFile } from '../../src/main/dev-file.ts';
import { inFuture } from '../http/service.ts';
import { setBehaviour } from '../../dev/simulator/set-behaviour.ts';
import { answering, httpServer } from '../providers/servers.ts';
import { eventually } from '../support/eventually.ts';
import { parsePage, parseQuery } from '../support/prometheus.ts';
import { call, emptyHome, startSendwright } from '../support/start.ts';

/**
 * Scrapes a running service. Every metric and label that the alerts and the dashboard of deploy/ query must exist.
 */
const fileOf = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
const ALERTS = 'deploy/prometheus/alerts.yml';
const DASHBOARD = 'deploy/grafana/sendwright.json';
/** Labels that Prometheus adds to each series, `service` by deploy/prometheus/prometheus.yml. */
const ADDED = ['job', 'instance', 'service'];

/** A query of the alerts or the dashboard, with its place. */
interface Query {
  readonly where: string;
  readonly expr: string;
}

async function alerts(): Promise<
  { name: string; expr: string; labels: object; annotations: Record<string, string> }[]
> {
  interface Rule {
    alert: string;
    expr: string;
    labels: object;
    annotations: Record<string, string>;
  }
  const { groups } = parse(await fileOf(ALERTS)) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules.map(({ alert: name, ...rule }) => ({ name, ...rule })));
}

async function panels(): Promise<Query[]> {
  interface Panel {
    title: string;
    targets?: { expr: string }[];
  }
  const dashboard = JSON.parse(await fileOf(DASHBOARD)) as { panels: Panel[] };
  return dashboard.panels.flatMap(({ title, targets = [] }) =>
    // Grafana replaces this variable.
    targets.map(({ expr }) => ({ where: title, expr: expr.replaceAll('$__rate_interval', '1m') })),
  );
}

/** Returns the sum of the samples that begin so, over all pages. */
function total(sample: string, pages: readonly string[]): number {
  const lines = pages.flatMap((text) => text.split('\n')).filter((line) => line.startsWith(sample));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

test('the metrics of a running service', async (t) => {
  const port = await getPort();
  const started = await startSendwright(t, await emptyHome(), {
    METRICS_PORT: String(port),
    SEND_MAX_ATTEMPTS: '2',
  });
  const dev = await started.dev();
  await sendEverything(t, dev);
  const page = async (url: string) => {
    const answer = await fetch(url);
    assert.equal(answer.status, 200, url);
    assert.match(String(answer.headers.get('content-type')), /^text\/plain; version=0\.0\.4/);
    return answer.text();
  };
  const scrape = async () => ({
    api: await page(`${dev.base_url}/metrics`),
    worker: await page(`http://127.0.0.1:${port}/metrics`),
  });
  for (const sample of [
    // The API records an event if a report comes before the provider's answer, and the worker one that it finds reported.
    'sendwright_message_events_total{kind="email",event="sent"}',
    'sendwright_message_events_total{kind="email",event="failed"}',
    'sendwright_message_events_total{kind="email",event="bounced"}',
    'sendwright_message_events_total{kind="chatapp",event="sent"}',
    'sendwright_message_events_total{kind="chatapp",event="delivered"}',
    'sendwright_schedule_lateness_seconds_count',
    'sendwright_webhook_attempt_duration_seconds_count',
  ]) {
    await eventually(`${sample} is more than 0`, async () => total(sample, Object.values(await scrape())) > 0);
  }
  const pages = await scrape();
  for (const [path, status] of [
    ['/healthz', 200],
    ['/readyz', 200],
    ['/', 404],
    ['/metrics?a', 404],
  ] as const) {
    assert.equal((await fetch(`http://127.0.0.1:${port}${path}`)).status, status, path);
  }
  const found = parsePage(pages.api, pages.worker);

  await t.test('count sent messages and their outcomes', () => {
    const api = (sample: string) => assert.ok(pages.api.includes(`\n${sample}`), `${sample} of the API`);
    const worker = (sample: string) => assert.ok(pages.worker.includes(`\n${sample}`), `${sample} of the worker`);
    api('sendwright_messages_accepted_total{kind="email",by="batch"} 120\n');
    api('sendwright_messages_accepted_total{kind="chatapp",by="single"} 1\n');
    assert.equal(total('sendwright_bounces_total{reason="mailbox_full"}', Object.values(pages)), 1);
    api('sendwright_database_up 1\n');
    api('sendwright_backlog{fleet="webhooks"} ');
    worker('sendwright_provider_outcomes_total{provider="postmark",operation="send",outcome="sent"} ');
    // The reset, and the attempts at fail-always@: a 500 does not show whether the message was taken. SEND_MAX_ATTEMPTS is
    // 2. The attempts are counted at the end of a round of the retry policy, so a third one is made if the second began and
    // the provider's "not found" was confirmed within the same round.
    assert.match(
      pages.worker,
      /\nsendwright_provider_outcomes_total\{provider="postmark",operation="send",outcome="unknown"\} [34]\n/,
    );
    worker('sendwright_time_to_provider_seconds_count{kind="chatapp"} 1\n');
    assert.doesNotMatch(pages.worker, /sendwright_backlog/, 'the API reports the backlog');
  });

  await t.test('contain no address, no id and no organization', () => {
    const text = `${pages.api}\n${pages.worker}`;
    for (const word of [dev.organization_id, dev.domain, dev.api_key, 'canary', 'example.net', '+1416']) {
      assert.ok(!text.includes(word), `${word} is in the metrics`);
    }
    assert.doesNotMatch(text, /\b(?:em|bt|wa|evt|wh|whd|key|org|grp)_[0-9a-z]{26}\b/);
  });

  await t.test('include those of Temporal’s SDK, each name once', () => {
    for (const page of [pages.api, pages.worker]) {
      const types = [...page.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
      assert.deepEqual(
        types.filter((name, i) => types.indexOf(name) !== i),
        [],
      );
      assert.ok(types.some((name) => name?.startsWith('temporal_')));
    }
  });

  await t.test('are listed in docs/metrics.md with type, labels and help', async () => {
    const docs = await fileOf('docs/metrics.md');
    const rows = [...docs.matchAll(/^\| `(sendwright_\w+)` *\| (\w+) *\| (.*?) *\| (.*?) *\|$/gm)].map(
      ([, name, type, labels, meaning]) => [name, type, labels, meaning],
    );
    const scraped = [...found]
      .filter(([name]) => name.startsWith('sendwright_'))
      .map(([name, { type, help, labels }]) => {
        const names = [...labels.keys()].filter((label) => label !== 'le');
        return [name, type, names.map((label) => `\`${label}\``).join(', '), help];
      });
    assert.deepEqual(rows.sort(), scraped.sort());
  });

  const queries: Query[] = [...(await alerts()).map(({ name, expr }) => ({ where: name, expr })), ...(await panels())];
  const docs = await fileOf('docs/metrics.md');
  for (const { where, expr } of queries) {
    await t.test(`include those of "${where}": ${expr.replace(/\s+/g, ' ').slice(0, 60)}`, () => {
      const { selectors, grouping } = parseQuery(expr);
      assert.ok(selectors.length > 0, 'the query has selectors');
      const known = new Set(ADDED);
      for (const { name, matchers } of selectors) {
        // Prometheus creates `up`.
        const metric =
          name === 'up' ? undefined : (found.get(name.replace(/_(?:bucket|count|sum)$/, '')) ?? found.get(name));
        if (name !== 'up') assert.ok(metric, `there is no ${name}`);
        for (const label of metric?.labels.keys() ?? []) known.add(label);
        for (const { label, value } of matchers.filter((matcher) => !ADDED.includes(matcher.label))) {
          const values = [...(metric?.labels.get(label) ?? [])];
          assert.ok(values.length > 0, `${name} has no label ${label}`);
          for (const word of value.split('|')) {
            const isKnown =
              values.some((each) => new RegExp(`^(?:${word})$`).test(each)) || docs.includes(`\`${word}\``);
            assert.ok(isKnown || word === '5..', `${label} of ${name} is never ${word}`);
          }
        }
      }
      for (const label of grouping) assert.ok(known.has(label), `no metric of the query has a label ${label}`);
    });
  }
});

describe('the alerts', () => {
  test('each have a severity, a summary and a description', async () => {
    for (const { name, labels, annotations } of await alerts()) {
      assert.match(JSON.stringify(labels), /^\{"severity":"(?:critical|warning)"\}$/, name);
      assert.ok(annotations['summary'] && annotations['description'], name);
    }
  });

  test('each have a test in which they fire', async () => {
    const tests = parse(await fileOf('deploy/prometheus/alerts.test.yml')) as { tests: { name: string }[] };
    const names = tests.tests.map(({ name }) => name);
    assert.deepEqual(names.sort(), [...(await alerts()).map(({ name }) => name), 'calm'].sort());
  });

  test('are valid for Prometheus and fire in their tests', (t) => {
    const promtool = process.env['PROMTOOL_PATH'] || 'promtool';
    const run = (...args: string[]) =>
      spawnSync(promtool, args, { cwd: new URL('../../deploy/prometheus', import.meta.url), encoding: 'utf8' });
    // promtool is not on npm.
    if (run('--version').error) {
      const hint = 'promtool is not installed: the alerts were only parsed (Debian: apt-get install prometheus)';
      console.log(hint);
      t.skip(hint);
      return;
    }
    for (const args of [
      ['check', 'rules', 'alerts.yml'],
      ['check', 'config', 'prometheus.yml'],
      ['test', 'rules', 'alerts.test.yml'],
    ]) {
      const { status, stdout, stderr } = run(...args);
      assert.equal(status, 0, `promtool ${args.join(' ')}: ${stdout}${stderr}`);
    }
  });
});

/** Sends messages of every kind that is counted. */
async function sendEverything(t: TestContext, dev: DevFile): Promise<void> {
  const mail = (to: string, fields: object = {}) => ({
    from: dev.from,
    to,
    subject: 'canary',
    text: 'canary',
    ...fields,
  });
  const post = (path: string, json: object, expected?: number) => call(dev, 'POST', path, json, expected);
  const url = await httpServer(t, answering({}));
  await post('/v1/webhooks', { url: `${url}/canary` });
  // Accepted without an answer: the provider is asked about it.
  await setBehaviour(dev.inbox_url ?? '', { reset_after_accept: 1 });
  await post('/v1/emails', mail('canary@example.net'));
  for (const to of ['delivered@example.net', 'bounced+mailbox_full@example.net', 'fail-always@example.net']) {
    await post('/v1/emails', mail(to));
  }
  await post('/v1/emails', mail('canary@example.net', { scheduled_at: inFuture({ ms: 5_000 }) }));
  const emails = Array.from({ length: 120 }, (_, i) => mail(`canary${i}@example.net`));
  await post('/v1/emails/batch', { emails });
  await post('/v1/emails', mail('nobody'), 422);
  await post('/v1/chatapp', { to: '+14165550177', text: 'canary' });
}
