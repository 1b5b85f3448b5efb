import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { startTracer } from '../../src/telemetry/otel.ts';
import { eventually } from '../support/eventually.ts';

/** A collector that takes no answer for good, so that the end of the process must not wait for it. */
const held = createServer(() => undefined).listen(0, '127.0.0.1');
await once(held, 'listening');
process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = `http://127.0.0.1:${(held.address() as AddressInfo).port}`;
process.env['OTEL_EXPORTER_OTLP_TIMEOUT'] = '300';
process.env['OTEL_BSP_SCHEDULE_DELAY'] = '50';
const warnings: string[] = [];
const tracer = startTracer('test', (message) => warnings.push(message));
after(() => {
  held.closeAllConnections();
  held.close();
});

test('makes a span current during its work only', async () => {
  assert.equal(tracer.current(), undefined);
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const within = await tracer.span('outer', { kind: 'server', parent, attributes: {} }, async () => {
    const outer = tracer.current();
    await new Promise(setImmediate);
    const inner = await tracer.span('inner', { kind: 'client', attributes: {} }, async () => tracer.current());
    return { outer, inner, again: tracer.current() };
  });
  const [, trace] = parent.split('-');
  assert.equal(within.outer?.split('-')[1], trace);
  assert.equal(within.inner?.split('-')[1], trace);
  assert.notEqual(within.inner, within.outer);
  assert.equal(within.again, within.outer);
  assert.equal(tracer.current(), undefined);
});

test('starts a new trace for an invalid traceparent', async () => {
  for (const parent of ['', 'x', '00-0-0-01', '0'.repeat(1_000)]) {
    const current = await tracer.span('s', { kind: 'server', parent, attributes: {} }, async () => tracer.current());
    assert.match(String(current), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/, parent);
  }
});

test('rethrows errors of the work', async () => {
  const failing = tracer.span('s', { kind: 'client', attributes: {} }, () => Promise.reject(new RangeError('canary')));
  await assert.rejects(failing, { name: 'RangeError', message: 'canary' });
});

test('warns of a collector that does not answer, and stops without it', async () => {
  await eventually('a warning', () => warnings.length > 0);
  await tracer.span('last', { kind: 'client', attributes: {} }, async () => undefined);
  await tracer.stop();
});
