import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, useService } from './service.ts';

const service = await useService();

describe('/docs', () => {
  it('needs no key, loads everything from the service and shows /openapi.json', async () => {
    const { text, headers } = await service.call('GET', '/docs');
    assert.match(String(headers['content-type']), /^text\/html/);
    const loaded = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => String(match[1]));
    assert.ok(loaded.length >= 5, text);
    for (const path of loaded) {
      assert.match(path, /^\/docs\//);
      assert.equal((await service.call('GET', path)).status, 200, path);
    }
    const { body } = await service.call('GET', '/docs/json');
    assert.deepEqual(body, (await service.call('GET', '/openapi.json')).body);
  });

  it('has a policy that forbids other sources, foreign scripts and frames', async () => {
    for (const path of ['/docs', '/docs/static/swagger-ui-bundle.js', '/docs/json', '/docs/static/none']) {
      const { headers } = await service.call('GET', path);
      const policy = String(headers['content-security-policy']);
      assert.match(policy, /default-src 'self';/);
      assert.match(policy, /frame-ancestors 'none';/);
      assert.doesNotMatch(policy, /script-src|https?:|\*/);
      assert.equal(headers['x-content-type-options'], 'nosniff');
    }
  });

  it('returns 404 for any other path', async () => {
    for (const path of ['/docs/none', '/docs/static/none', '/docs/static/..%2f..%2fpackage.json', '/docs/static/%00']) {
      assertRefused(await service.call('GET', path), 404, 'not_found');
    }
    assertRefused(await service.call('POST', '/docs'), 404, 'not_found');
  });
});
