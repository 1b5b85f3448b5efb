import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { inFuture, useService } from './service.ts';

/** Valid JSON for each operation is tried in test/security/fuzz-routes.test.ts. */
const service = await useService();
const ours = await service.organization();
const RUNS = 1_000;

/** Texts that cause trouble, and some valid ones. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.string({ minLength: 1, maxLength: 1 }) }),
  fc.constantFrom('', ' ', '\0', '\r\n', '\u2028', '\uD800', '😀', '__proto__', 'constructor', '$1', "'", '"', '\\'),
  fc.constantFrom('a@example.net', 'Ada <a@example.net>', 'a@', '@', '<>', 'a@b@c', 'a@xn--', 'a@[1.2.3.4]', 'a@é.é'),
  fc.constantFrom('2026-03-01', '2026-03-01T09:30:00Z', '9999-12-31T23:59:59Z', '+275760-09-13T00:00:00Z', 'NaN'),
  fc.emailAddress(),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
);
const anything = fc.anything({ key: text, values: [text, fc.double(), fc.boolean(), fc.constant(null)], maxDepth: 4 });
const aTag = fc.record({ name: text, value: text }, { requiredKeys: [] });

/** Bodies that look like emails in some of their fields. */
const emailLike = fc
  .record(
    {
      to: fc.oneof(text, fc.array(text), anything),
      cc: fc.oneof(text, fc.array(text), anything),
      bcc: fc.oneof(text, fc.array(text), anything),
      reply_to: fc.oneof(text, fc.array(text), anything),
      subject: fc.oneof(text, anything),
      html: fc.oneof(text, anything),
      text: fc.oneof(text, anything),
      marketing: fc.oneof(fc.boolean(), anything),
      tags: fc.oneof(fc.array(aTag), anything),
      headers: fc.oneof(fc.dictionary(text, text), anything),
      scheduled_at: fc.oneof(text, anything),
    },
    { requiredKeys: [] },
  )
  .chain((fields) =>
    fc
      .subarray(Object.keys(fields), { maxLength: 3 })
      .map((keys) => Object.fromEntries(Object.entries(fields).filter(([key]) => keys.includes(key)))),
  );

/** JSON cut off, or with a piece of something else in it. */
const broken = fc
  .tuple(fc.json(), fc.nat(), fc.nat(3), fc.constantFrom('', '\0', '{', '}', '"', ',', '\\', '\uFEFF', 'null', '[[['))
  .map(([json, at, cut, piece]) => {
    const where = json.length === 0 ? 0 : at % (json.length + 1);
    return json.slice(0, where) + piece + json.slice(where + cut);
  });

it(`POST /v1/emails: accepts or refuses an email with up to three odd fields, ${RUNS} times`, async () => {
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(emailLike, async (fields) => {
      const answer = await ours.send(fields);
      assert.ok([202, 422].includes(answer.status), answer.text);
      if (answer.status !== 202) return;
      accepted++;
      const email = await ours.email((answer.body as { id: string }).id);
      for (const [field, value] of Object.entries(fields)) {
        if (field === 'subject') assert.equal(email['subject'], value);
        if (field === 'headers' && value) assert.deepEqual(email['headers'], { ...value });
        if (field === 'to') assert.deepEqual(email['to'], [value].flat());
      }
    }),
    { numRuns: RUNS },
  );
  assert.ok(accepted > RUNS / 100, `${accepted} were accepted`);
});

it(`POST /v1/emails: refuses broken JSON, ${RUNS} times`, async () => {
  await fc.assert(
    fc.asyncProperty(broken, async (raw) => {
      const answer = await ours.call('POST', '/v1/emails', { raw, headers: { 'content-type': 'application/json' } });
      assert.ok([400, 422].includes(answer.status), answer.text);
    }),
    { numRuns: RUNS },
  );
});

it(`any path, method, type and body: returns no 5xx, ${RUNS} times`, async () => {
  const id = await ours.sent({ scheduled_at: inFuture({ hours: 1 }) });
  // The bytes of a lone surrogate are not UTF-8.
  const encoded = text.map((value) => (value.isWellFormed() ? encodeURIComponent(value) : '%ED%A0%80'));
  const part = fc.oneof(encoded, fc.constantFrom('v1', 'emails', id, 'cancel', 'callbacks', '%', '..'));
  const path = fc.array(part, { maxLength: 5 }).map((parts) => `/${parts.join('/')}`);
  const known = fc.constantFrom('/v1/emails', `/v1/emails/${id}`, `/v1/emails/${id}/cancel`, '/callbacks/postmark');
  const query = fc.option(
    fc.webQueryParameters().map((parameters) => `?${parameters}`),
    { nil: '' },
  );
  const type = fc.constantFrom('application/json', 'text/plain', '', 'application/json; charset=x', ';;', 'a/b');
  const method = fc.constantFrom('GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'QUERY', 'PROPFIND');
  const body = fc.oneof(
    anything.map((value) => JSON.stringify(value)),
    broken,
  );
  await fc.assert(
    fc.asyncProperty(fc.oneof(path, known), query, method, type, body, async (url, search, verb, contentType, raw) => {
      const answer = await ours.call(verb, url + search, {
        ...(verb !== 'GET' && verb !== 'HEAD' && { raw }),
        headers: { 'content-type': contentType },
      });
      assert.ok(answer.status < 500, `${answer.status} ${answer.text}`);
    }),
    { numRuns: RUNS },
  );
});
