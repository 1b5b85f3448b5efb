import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { hostileText, hostileValue } from '../security/hostile.ts';
import { inFuture, useService } from './service.ts';

/** test/security/fuzz-routes.test.ts sends valid JSON to each operation. */
const service = await useService();
const ours = await service.organization();
const RUNS = 1_000;

it(`any path, method, type and body: returns no 5xx, ${RUNS} times`, async () => {
  const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
  // The bytes of a lone surrogate are not UTF-8.
  const encoded = hostileText.map((value) => (value.isWellFormed() ? encodeURIComponent(value) : '%ED%A0%80'));
  const part = fc.oneof(encoded, fc.constantFrom('v1', 'emails', id, 'cancel', 'callbacks', '%', '..'));
  const path = fc.array(part, { maxLength: 5 }).map((parts) => `/${parts.join('/')}`);
  const known = fc.constantFrom('/v1/emails', `/v1/emails/${id}`, `/v1/emails/${id}/cancel`, '/callbacks/postmark');
  const query = fc.option(
    fc.webQueryParameters().map((parameters) => `?${parameters}`),
    { nil: '' },
  );
  const type = fc.constantFrom('application/json', 'text/plain', '', 'application/json; charset=x', ';;', 'a/b');
  const method = fc.constantFrom('GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'QUERY', 'PROPFIND');
  const cut = fc.tuple(hostileValue, fc.nat()).map(([value, at]) => {
    const json = JSON.stringify(value);
    return json.slice(0, at % (2 * json.length));
  });
  await fc.assert(
    fc.asyncProperty(fc.oneof(path, known), query, method, type, cut, async (url, search, verb, contentType, raw) => {
      const answer = await ours.call(verb, url + search, {
        ...(verb !== 'GET' && verb !== 'HEAD' && { raw }),
        headers: { 'content-type': contentType },
      });
      assert.ok(answer.status < 500, `${answer.status} ${answer.text}`);
    }),
    { numRuns: RUNS },
  );
});
