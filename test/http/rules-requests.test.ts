import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertRefused, MAX_BODY_BYTES, type Organization, type Service, startService } from './service.ts';
import { head, speak } from './socket.ts';

/** Rules of interface.md that hold for every request, asked of every operation that the API describes. */
let service: Service;
let ours: Organization;
let operations: (readonly [method: string, path: string])[];
before(async () => {
  service = await startService();
  ours = await service.organization();
  const { paths } = (await service.call('GET', '/openapi.json')).body as { paths: Record<string, object> };
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [method.toUpperCase(), path.replace(/\{\w+\}/g, 'x')] as const),
  );
  assert.ok(operations.length >= 15, 'there is something to ask');
});
after(() => service.close());

/** What is there for load balancers, and has no version. */
const HEALTH = ['/healthz', '/readyz'];

describe('every operation', () => {
  it('takes an API key as a Bearer token and is refused without one, but for signed links and health', async () => {
    for (const [method, path] of operations) {
      if (HEALTH.includes(path) || path.endsWith('/download')) continue;
      assertRefused(await service.call(method, path), 401, 'unauthorized');
      assertRefused(await service.call(method, path, { key: `${ours.key}x` }), 401, 'unauthorized');
      assert.notEqual((await ours.call(method, path)).status, 401, `${method} ${path}`);
    }
  });

  it('is under /v1, and under no other version or none, but for health', async () => {
    for (const [method, path] of operations) {
      if (HEALTH.includes(path)) continue;
      assert.match(path, /^\/v1\//);
      for (const other of [path.replace('/v1/', '/'), path.replace('/v1/', '/v2/')]) {
        assertRefused(await ours.call(method, other), 404, 'not_found');
      }
    }
  });
});

describe('a batch', () => {
  it('over 43 MB is refused with 413 payload_too_large, from its length', async () => {
    const type = 'Content-Type: application/json';
    const request = head('/v1/emails/batch', ours.key, type, `Content-Length: ${MAX_BODY_BYTES + 1}`);
    assertRefused(await speak(service.port, request), 413, 'payload_too_large');
  });
});
