import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { recordingServer } from '../providers/servers.ts';
import { eventually } from '../support/eventually.ts';
import { emptyHome, startSendwright } from '../support/start.ts';

/** A span as it arrives by OTLP. */
interface Span {
  readonly service: string;
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface Attribute {
  key: string;
  value: Record<string, unknown>;
}
type SentSpan = Omit<Span, 'service' | 'attributes' | 'links'> & { attributes: Attribute[]; links?: Span['links'] };
interface Sent {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: SentSpan[] }[] }[];
}

const plain = (attributes: Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** A collector that keeps the spans that it receives. */
async function collector(t: TestContext): Promise<{ url: string; spans: Span[]; bodies: string[] }> {
  const spans: Span[] = [];
  const bodies: string[] = [];
  const { url } = await recordingServer(t, ({ url: path, body }) => {
    assert.equal(path, '/v1/traces');
    bodies.push(body.toString());
    for (const { resource, scopeSpans } of (JSON.parse(body.toString()) as Sent).resourceSpans) {
      const service = String(plain(resource.attributes)['service.name']);
      for (const { attributes, links = [], ...span } of scopeSpans.flatMap((scope) => scope.spans)) {
        spans.push({ ...span, service, links, attributes: plain(attributes) });
      }
    }
    return { body: '{}', headers: { 'content-type': 'application/json' } };
  });
  return { url, spans, bodies };
}

const [SERVER, CLIENT, PRODUCER, CONSUMER] = [2, 3, 4, 5];

test('traces', async (t) => {
  const { url, spans, bodies } = await collector(t);
  const started = await startSendwright(t, await emptyHome(), {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_BSP_SCHEDULE_DELAY: '100',
    // With few tokens for workflow starts, concurrent emails share a workflow.
    WORKFLOW_STARTS_PER_SECOND: '1',
  });
  const dev = await started.dev();

  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${dev.base_url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${dev.api_key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, ...((await response.json()) as { id: string }) };
  };
  const mail = () => ({ from: dev.from, to: 'canaryto@canary.example', subject: 'canarysubject', text: 'canarytext' });
  const find = (what: string, matches: (span: Span) => boolean | undefined) =>
    eventually(`a span of ${what}`, () => spans.find(matches), 20_000);
  const childOf = (what: string, { traceId, spanId }: Span) =>
    find(what, (span) => span.traceId === traceId && span.parentSpanId === spanId && span.name === what);
  /** The spans from a request to the call of the provider. */
  const follow = async (request: Span, start: string, activity: string) => {
    const started = await childOf(start, request);
    const attempted = await childOf(activity, started);
    return { started, attempted, called: await childOf('postmark send', attempted) };
  };

  await t.test('of one email lead from the request through the relay and the activity to the provider', async () => {
    const { id } = await post('/v1/emails', mail());
    const request = await find('the request', ({ attributes }) => attributes['sendwright.message.id'] === id);
    assert.deepEqual([request.service, request.name, request.kind], ['sendwright-api', 'POST /v1/emails', SERVER]);
    assert.equal(request.attributes['http.response.status_code'], 202);
    assert.match(String(request.attributes['sendwright.request.id']), /^req_/);
    const { started, attempted, called } = await follow(request, 'start message', 'attemptEmail');
    assert.deepEqual([started.service, started.kind], ['sendwright-api', PRODUCER]);
    assert.deepEqual([attempted.service, attempted.kind], ['sendwright-worker', CONSUMER]);
    assert.equal(attempted.attributes['sendwright.workflow.id'], id);
    assert.deepEqual([called.service, called.kind], ['sendwright-worker', CLIENT]);
    assert.equal(called.attributes['sendwright.outcome.sent'], 1);
  });

  await t.test('continue the trace of the caller', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    await post('/v1/emails', mail(), { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
    const request = await find('the request', (span) => span.traceId === traceId && span.kind === SERVER);
    assert.equal(request.parentSpanId, 'b7ad6b7169203331');
    await follow(request, 'start message', 'attemptEmail');
  });

  await t.test('of a batch include its groups', async () => {
    const { id } = await post('/v1/emails/batch', { emails: Array.from({ length: 30 }, mail) });
    const request = await find('the request', ({ attributes }) => attributes['sendwright.message.id'] === id);
    const { started, called } = await follow(request, 'start group', 'deliverGroup');
    assert.equal(started.attributes['sendwright.messages'], 30);
    assert.equal(called.attributes['sendwright.messages'], 30);
  });

  await t.test('of several requests that share a workflow are linked to the trace of the workflow', async () => {
    const ids = (await Promise.all(Array.from({ length: 30 }, () => post('/v1/emails', mail())))).map(({ id }) => id);
    const requests = await eventually('all requests', () => {
      const all = spans.filter(({ attributes }) => ids.includes(String(attributes['sendwright.message.id'])));
      const theirs = all.filter(({ kind }) => kind === SERVER);
      return theirs.length === ids.length && theirs;
    });
    const traces = requests.map(({ traceId }) => traceId);
    assert.equal(new Set(traces).size, ids.length);
    const group = await find('the group', ({ name, links }) => {
      return name === 'start group' && links.some(({ traceId }) => traces.includes(traceId));
    });
    assert.ok(!traces.includes(group.traceId), 'the workflow has its own trace');
    assert.ok(group.links.length > 1, `${group.links.length} links`);
    await childOf('deliverGroup', group);
  });

  await t.test('of a chat-app message lead from the request to the provider', async () => {
    const { id } = await post('/v1/chatapp', { to: '+14165550177', text: 'canarytext' });
    const request = await find('the request', ({ attributes }) => attributes['sendwright.message.id'] === id);
    const started = await childOf('start message', request);
    const attempted = await childOf('attemptChat', started);
    await find('the call', ({ name, parentSpanId }) => name.endsWith(' send') && parentSpanId === attempted.spanId);
  });

  await t.test('of a refused request do not fail', async () => {
    const answer = await post('/v1/emails', { ...mail(), from: 'a@canary.example' });
    assert.equal(answer.status, 403);
    const span = await find('the refusal', ({ attributes }) => attributes['http.response.status_code'] === 403);
    assert.equal((span as unknown as { status?: { code?: number } }).status?.code ?? 0, 0);
  });

  await t.test('contain no address, no content and no key', () => {
    const sent = bodies.join('\n');
    for (const word of ['canary', '4165550177', dev.api_key, dev.domain])
      assert.ok(!sent.includes(word), `${word} was sent`);
  });

  await t.test('do not include unauthenticated requests and health checks', async () => {
    await fetch(`${dev.base_url}/healthz`);
    await fetch(`${dev.base_url}/v1/emails`, { method: 'POST' });
    const { id } = await post('/v1/emails', mail());
    await find('a later request', ({ attributes }) => attributes['sendwright.message.id'] === id);
    assert.ok(
      !spans.some(
        ({ name, attributes }) => name.includes('/healthz') || attributes['http.response.status_code'] === 401,
      ),
    );
  });
});
