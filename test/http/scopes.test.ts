import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { routeTable } from '../../src/http/app.ts';
import { PRESETS, type Preset } from '../../src/store/keys.ts';
import { assertRefused, type Organization, type Service, startService } from './service.ts';

let service: Service;
let ours: Organization;
const keys = new Map<Preset, string>();
let table: ReturnType<typeof routeTable>;
before(async () => {
  service = await startService();
  ours = await service.organization();
  for (const preset of PRESETS) keys.set(preset, await ours.addKey(preset));
  table = routeTable(service.deps, () => ({}));
});
after(() => service.close());

/** What sending_access may do, all of it. */
const SENDING = new Set([
  'POST /v1/emails',
  'POST /v1/emails/batch',
  'POST /v1/emails/batch/:id/cancel',
  'PATCH /v1/emails/:id',
  'POST /v1/emails/:id/cancel',
  'POST /v1/chatapp',
]);
/** Addresses that need no key. */
const OPEN = /^(?:GET|POST) \/(?:unsubscribe|callbacks|healthz|readyz|metrics|openapi\.json)|\/download$/;

function may(preset: Preset, operation: string): boolean {
  if (preset === 'full_access') return true;
  if (preset === 'sending_access') return SENDING.has(operation);
  return operation.startsWith('GET ') && !operation.startsWith('GET /v1/keys');
}

describe('what each preset may do, of all that can be asked', () => {
  it('sending_access: POST of emails, batches and messages, PATCH and cancel; read_only: every GET but keys', async () => {
    const operations = new Set<string>();
    for (const [method, url] of table) {
      const operation = `${String(method)} ${url}`;
      operations.add(operation);
      // Nothing that is there, and nothing that could be done: only whether it may be tried is asked.
      const path = url.replaceAll(/:\w+/g, 'x');
      if (OPEN.test(operation)) continue;
      assert.equal((await service.call(String(method), path)).status, 401, operation);
      for (const preset of PRESETS) {
        const answer = await service.call(String(method), path, { key: keys.get(preset) });
        if (may(preset, operation))
          assert.ok(![401, 403].includes(answer.status), `${preset}: ${operation} ${answer.text}`);
        else assertRefused(answer, 403, 'insufficient_scope', undefined, `this API key has ${preset}`);
      }
    }
    for (const operation of SENDING) assert.ok(operations.has(operation), `${operation} is asked`);
  });

  it('the table says public of what is open, and of nothing else', () => {
    for (const [method, url, scope] of table) {
      assert.equal(scope === 'public', OPEN.test(`${String(method)} ${url}`), `${String(method)} ${url}`);
    }
  });

  it('a key for certain domains sends no chat-app messages: its domains say nothing of numbers', async () => {
    await ours.addDomain('only.example');
    for (const preset of ['full_access', 'sending_access'] as const) {
      const key = await ours.addKey(preset, ['only.example']);
      const answer = await service.call('POST', '/v1/chatapp', { key, json: { to: '+14165550123', text: 'Hi.' } });
      assertRefused(answer, 403, 'insufficient_scope', undefined, 'this API key may send from certain domains only');
    }
  });
});
