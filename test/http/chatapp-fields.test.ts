import assert from 'node:assert/strict';
import { it } from 'node:test';
import { assertRefused, useService } from './service.ts';

/**
 * The fields of POST /v1/chatapp. Numbers and URLs are tested in test/domain/phone.test.ts and test/public-fetch, control
 * characters, types and unknown fields in test/security/fuzz-routes.test.ts.
 */
type Json = Record<string, unknown>;
type Row = readonly [fields: Json, param: string | undefined, message: string];

const LINK = 'https://cdn.example.com/a.png';
const NAMED = { name: 't', language: 'en' };
const template = (more: Json = {}) => ({ type: 'template', text: undefined, template: { ...NAMED, ...more } });
const image = (more: unknown) => ({ type: 'image', text: undefined, image: more });
const document = (more: unknown) => ({ type: 'document', text: undefined, document: more });
const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

const INTERNATIONAL = 'must be an international telephone number that begins with +';
const PUBLIC = 'must be an https URL on the public internet';
const LENGTH = 'must be 1 to 4096 characters';
const UNKNOWN = 'is not a known field';

const REFUSED: readonly Row[] = [
  [{ to: undefined }, 'to', 'is required'],
  [{ to: '14165550123' }, 'to', INTERNATIONAL],
  [{ to: '+80012345678' }, 'to', 'belongs to no country'],
  [{ from: '12025550142' }, 'from', INTERNATIONAL],
  [{ type: 'video' }, 'type', 'must be one of text, template, image, document'],
  [{ text: undefined }, 'text', 'is required when type is text'],
  [{ text: '' }, 'text', LENGTH],
  [{ text: 'x'.repeat(4_097) }, 'text', LENGTH],
  [{ text: '😀'.repeat(4_097) }, 'text', LENGTH],
  [{ ...image({ link: LINK }), text: '' }, 'text', LENGTH],
  [{ type: 'template', text: undefined }, 'template', 'is required when type is template'],
  [{ type: 'image' }, 'image', 'is required when type is image'],
  [{ type: 'document', text: undefined }, 'document', 'is required when type is document'],
  [{ image: { link: LINK } }, 'image', 'cannot be given when type is text'],
  [{ ...image({ link: LINK }), document: { link: LINK } }, 'document', 'cannot be given when type is image'],
  [{ ...template(), text: 'x' }, 'text', 'cannot be given when type is template'],
  [template({ name: '' }), 'template.name', 'must be 1 to 512 characters'],
  [template({ language: null }), 'template.language', 'must be a string or an object'],
  [template({ language: {} }), 'template.language.code', 'is required'],
  [template({ language: { code: 'en', policy: 'x' } }), 'template.language.policy', UNKNOWN],
  [template({ components: [{ n: 2 ** 53 }] }), 'template.components.0.n', 'is a number with more digits than'],
  [template({ components: { a: ['\0'] } }), 'template.components.a.0', 'must not contain NUL'],
  [template({ components: { '\0': 1 } }), 'template.components.\0', 'must not contain NUL'],
  [template({ components: nested(21) }), `template.components${'.0'.repeat(20)}`, 'must be nested at most'],
  [image({}), 'image.link', 'is required'],
  [image({ link: `https://example.com/${'x'.repeat(8_192)}` }), 'image.link', 'must be 1 to 8192'],
  [image({ link: 'https://10.1.2.3/a.png' }), 'image.link', PUBLIC],
  [document({ link: 'http://example.com/' }), 'document.link', PUBLIC],
  [image({ link: LINK, caption: 'x'.repeat(4_097) }), 'image.caption', LENGTH],
  [image({ link: LINK, filename: 'a.png' }), 'image.filename', UNKNOWN],
  [document({ link: LINK, filename: 'x'.repeat(256) }), 'document.filename', 'must be 1 to 255'],
];

const service = await useService();
const ours = await service.organization();
await ours.call('POST', '/v1/chatapp/numbers', {
  json: { number: '+12025550142', provider: 'twilio', auth_token: 'token' },
});
const post = (fields: Json) =>
  ours.call('POST', '/v1/chatapp', { json: { to: '+14165550123', text: 'Hi.', ...fields } });

for (const [fields, param, message] of REFUSED) {
  it(`422 at ${JSON.stringify(param).slice(0, 40)}: ${JSON.stringify(fields).slice(0, 80)}`, async () => {
    assertRefused(await post(fields), 422, 'validation_error', param, message);
  });
}

it('accepts fields at their limits and stores no refused message', async () => {
  const accepted: readonly Json[] = [
    { text: '😀'.repeat(4_096) },
    image({ link: `https://example.com/${'x'.repeat(8_172)}`, caption: 'x'.repeat(4_096) }),
    document({ link: 'https://8.8.8.8:8443/a?b=c#d', filename: 'x'.repeat(255) }),
    template({ name: 'x'.repeat(512), language: { code: 'x'.repeat(35) }, components: nested(20) }),
    template({ components: [2 ** 53 - 1, 1e-300, 0.1, 'x\n'] }),
    template({ components: 'any JSON' }),
  ];
  for (const fields of accepted) {
    const answer = await post(fields);
    assert.equal(answer.status, 202, answer.text);
  }
  const { rowCount } = await service.pool.query('SELECT FROM chat_messages');
  assert.equal(rowCount, accepted.length);
});
