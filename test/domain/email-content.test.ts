import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { type EmailContent, keyVersion, openBody, openHeaders, sealContent } from '../../src/domain/email/content.ts';

const key = { version: 3, key: createSecretKey(randomBytes(32)) };
const content: EmailContent = { html: '<p>canary</p>', text: null, headers: { 'X-Order': 'canary' } };

test('opens what was sealed, of any size and with any text, and stores nothing in the clear', async () => {
  const text = fc.option(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ minLength: 600, maxLength: 3_000 })));
  await fc.assert(
    fc.asyncProperty(text, text, fc.dictionary(fc.string(), fc.string()), async (html, plain, headers) => {
      const sealed = await sealContent(key, 'em_1', { html, text: plain, headers });
      assert.deepEqual(await openBody(key.key, 'em_1', sealed.sealed_body), { html, text: plain });
      assert.equal(sealed.body_bytes, Buffer.byteLength(html ?? '') + Buffer.byteLength(plain ?? ''));
      if (Object.keys(headers).length === 0) assert.equal(sealed.sealed_headers, null);
      else {
        const opened = await openHeaders(key.key, 'em_1', sealed.sealed_headers ?? Buffer.alloc(0));
        assert.deepEqual(Object.entries(opened), Object.entries(headers));
      }
    }),
  );
  const { sealed_body: body, sealed_headers: headers } = await sealContent(key, 'em_1', content);
  assert.ok(!body.includes('canary') && !headers?.includes('canary'));
  assert.deepEqual([keyVersion(body), headers && keyVersion(headers)], [3, 3]);
});

test('compresses a large body on another thread, and opens it again', async () => {
  const html = '山'.repeat(1_000_000) + randomBytes(200_000).toString('base64');
  const { sealed_body: sealed } = await sealContent(key, 'em_1', { ...content, html });
  assert.ok(sealed.length < 400_000, `${sealed.length}`);
  assert.ok((await openBody(key.key, 'em_1', sealed)).html === html);
});

test('refuses a value of another email, of another part, under another key, and one of which a bit has changed', async () => {
  const { sealed_body: body, sealed_headers: headers } = await sealContent(key, 'em_1', content);
  await assert.rejects(openBody(key.key, 'em_2', body));
  await assert.rejects(openBody(createSecretKey(randomBytes(32)), 'em_1', body));
  await assert.rejects(openBody(key.key, 'em_1', headers ?? body));
  for (let bit = 0; bit < body.length * 8; bit++) {
    const changed = Buffer.from(body);
    changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
    await assert.rejects(openBody(key.key, 'em_1', changed), `bit ${bit}`);
  }
});

test('encrypts the same content differently each time', async () => {
  const [one, other] = [await sealContent(key, 'em_1', content), await sealContent(key, 'em_1', content)];
  assert.notDeepEqual(one.sealed_body, other.sealed_body);
});
