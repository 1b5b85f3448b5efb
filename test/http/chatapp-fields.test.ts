import { after, before, describe, it } from 'node:test';
import assert from 'node:assert/strict';
import { assertRefused, type Organization, type Service, startService } from './service.ts';

type Json = Record<string, unknown>;
type Row = readonly [what: string, fields: Json, param: string | undefined, says: string];

const LINK = 'https://cdn.example.com/a.png';
const template = (more: Json = {}) => ({
  type: 'template',
  text: undefined,
  template: { name: 't', language: 'en', ...more },
});
const image = (more: unknown) => ({ type: 'image', text: undefined, image: more });
const document = (more: unknown) => ({ type: 'document', text: undefined, document: more });
const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

const INTERNATIONAL = 'must be an international telephone number that begins with +';
const PUBLIC = 'must be an https URL on the public internet';
const INEXACT = 'is a number with more digits than can be passed on';

const REFUSED: Readonly<Record<string, readonly Row[]>> = {
  'to: one recipient, international E.164': [
    ['left out', { to: undefined }, 'to', 'is required'],
    ['null', { to: null }, 'to', 'must be a string'],
    ['a list', { to: ['+14165550123'] }, 'to', 'must be a string'],
    ['a number', { to: 14165550123 }, 'to', 'must be a string'],
    ['without +', { to: '14165550123' }, 'to', INTERNATIONAL],
    ['two numbers', { to: '+14165550123,+14165550124' }, 'to', INTERNATIONAL],
    ['too short', { to: '+1416555012' }, 'to', 'is not a telephone number'],
    ['of no country', { to: '+80012345678' }, 'to', 'belongs to no country'],
    ['of a satellite phone', { to: '+881612345678' }, 'to', 'belongs to no country'],
  ],
  'from: malformed': [
    ['a number', { from: 12025550142 }, 'from', 'must be a string'],
    ['without +', { from: '12025550142' }, 'from', INTERNATIONAL],
    ['impossible', { from: '+1' }, 'from', 'is not a telephone number'],
  ],
  'type: text (default), template, image, document': [
    ['another one', { type: 'video' }, 'type', 'must be one of text, template, image, document'],
    ['in capitals', { type: 'TEXT' }, 'type', 'must be one of'],
    ['a member of objects', { type: 'constructor' }, 'type', 'must be one of'],
    ['true', { type: true }, 'type', 'must be a string'],
  ],
  'text: 1 to 4,096 characters': [
    ['left out', { text: undefined }, 'text', 'is required when type is text'],
    ['null', { text: null }, 'text', 'is required when type is text'],
    ['empty', { text: '' }, 'text', 'must be 1 to 4096 characters'],
    ['too long', { text: 'x'.repeat(4_097) }, 'text', 'must be 1 to 4096 characters'],
    ['too long, in code points', { text: '😀'.repeat(4_097) }, 'text', 'must be 1 to 4096 characters'],
    ['a number', { text: 5 }, 'text', 'must be a string'],
    ['with NUL', { text: 'a\0b' }, 'text', 'must not hold NUL'],
    ['with a lone surrogate', { text: 'a\uD800' }, 'text', 'must be well-formed Unicode'],
    ['an empty caption', { ...image({ link: LINK }), text: '' }, 'text', 'must be 1 to 4096 characters'],
  ],
  'preview_url: boolean': [['a string', { preview_url: 'true' }, 'preview_url', 'must be true or false']],
  'the object that the type requires': [
    ['of a template', { type: 'template', text: undefined }, 'template', 'is required when type is template'],
    ['of an image', { type: 'image', text: 'x' }, 'image', 'is required when type is image'],
    ['of a document', { type: 'document', text: undefined }, 'document', 'is required when type is document'],
    ['null', image(null), 'image', 'is required when type is image'],
    ['a string', image(LINK), 'image', 'must be an object'],
    ['a list', image([LINK]), 'image', 'must be an object'],
  ],
  'an unused object': [
    ['an image on a text', { image: { link: LINK } }, 'image', 'cannot be given when type is text'],
    ['a template on a text', { template: template().template }, 'template', 'cannot be given when type is text'],
    ['a document on an image', { ...image({ link: LINK }), document: { link: LINK } }, 'document', 'cannot be given'],
    ['a text on a template', { ...template(), text: 'x' }, 'text', 'cannot be given when type is template'],
  ],
  'template: {name, language, components?}': [
    ['no name', template({ name: undefined }), 'template.name', 'is required'],
    ['no language', template({ language: undefined }), 'template.language', 'is required'],
    ['an empty name', template({ name: '' }), 'template.name', 'must be 1 to 512 characters'],
    ['a name of two lines', template({ name: 'a\nb' }), 'template.name', 'must not hold control characters'],
    ['a language that is null', template({ language: null }), 'template.language', 'must be a string or an object'],
    ['a language without code', template({ language: {} }), 'template.language.code', 'is required'],
    ['a code that is a number', template({ language: { code: 5 } }), 'template.language.code', 'must be a string'],
    [
      'a policy',
      template({ language: { code: 'en', policy: 'x' } }),
      'template.language.policy',
      'is not a known field',
    ],
    ['another field', template({ namespace: 'x' }), 'template.namespace', 'is not a known field'],
  ],
  'components are passed on verbatim, or refused': [
    ['a number that would be rounded', template({ components: [{ n: 2 ** 53 }] }), 'template.components.0.n', INEXACT],
    ['NUL', template({ components: { a: ['\0'] } }), 'template.components.a.0', 'must not hold NUL'],
    ['NUL in a key', template({ components: { '\0': 1 } }), 'template.components.\0', 'must not hold NUL'],
    ['a lone surrogate', template({ components: '\uDC00' }), 'template.components', 'must be well-formed Unicode'],
    [
      'too deep',
      template({ components: nested(21) }),
      `template.components${'.0'.repeat(20)}`,
      'must be nested at most',
    ],
  ],
  'link: a public HTTPS URL': [
    ['left out', image({}), 'image.link', 'is required'],
    ['empty', image({ link: '' }), 'image.link', 'must be 1 to 8192 characters'],
    ['no URL', image({ link: 'a.png' }), 'image.link', PUBLIC],
    ['http', image({ link: 'http://example.com/a.png' }), 'image.link', PUBLIC],
    ['ftp', image({ link: 'ftp://example.com/a.png' }), 'image.link', PUBLIC],
    ['data', image({ link: 'data:image/png;base64,AA==' }), 'image.link', PUBLIC],
    ['loopback', image({ link: 'https://127.0.0.1/a.png' }), 'image.link', PUBLIC],
    ['loopback in other clothes', image({ link: 'https://2130706433/a.png' }), 'image.link', PUBLIC],
    ['loopback of IPv6', image({ link: 'https://[::1]/a.png' }), 'image.link', PUBLIC],
    ['private', image({ link: 'https://10.1.2.3/a.png' }), 'image.link', PUBLIC],
    ['of a cloud’s metadata', image({ link: 'https://169.254.169.254/a' }), 'image.link', PUBLIC],
    ['localhost', image({ link: 'https://localhost/a.png' }), 'image.link', PUBLIC],
    ['a name without a dot', image({ link: 'https://intranet/a.png' }), 'image.link', PUBLIC],
    ['a name of a local network', image({ link: 'https://nas.local./a.png' }), 'image.link', PUBLIC],
    ['a name inside', image({ link: 'https://files.acme.internal/a.png' }), 'image.link', PUBLIC],
    ['a password', image({ link: 'https://a:b@example.com/a.png' }), 'image.link', PUBLIC],
    ['a blank', image({ link: 'https://example.com/a b.png' }), 'image.link', PUBLIC],
    ['a port of mail', image({ link: 'https://example.com:25/' }), 'image.link', PUBLIC],
    ['too long', image({ link: `https://example.com/${'x'.repeat(8_192)}` }), 'image.link', 'must be 1 to 8192'],
    ['of a document', document({ link: 'http://example.com/' }), 'document.link', PUBLIC],
  ],
  'caption and filename': [
    ['an empty caption', image({ link: LINK, caption: '' }), 'image.caption', 'must be 1 to 4096 characters'],
    ['a caption too long', image({ link: LINK, caption: 'x'.repeat(4_097) }), 'image.caption', 'must be 1 to 4096'],
    ['a filename of an image', image({ link: LINK, filename: 'a.png' }), 'image.filename', 'is not a known field'],
    [
      'a filename of two lines',
      document({ link: LINK, filename: 'a\nb' }),
      'document.filename',
      'must not hold control',
    ],
    [
      'a filename too long',
      document({ link: LINK, filename: 'x'.repeat(256) }),
      'document.filename',
      'must be 1 to 255',
    ],
  ],
  'unknown fields': [
    ['of email', { subject: 'x' }, 'subject', 'is not a known field'],
    ['of another service', { messaging_product: 'whatsapp' }, 'messaging_product', 'is not a known field'],
  ],
};

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
  await ours.call('POST', '/v1/chatapp/numbers', {
    json: { number: '+12025550142', provider: 'twilio', auth_token: 'token' },
  });
});
after(() => service.close());

for (const [rule, rows] of Object.entries(REFUSED)) {
  describe(`POST /v1/chatapp, ${rule}`, () => {
    for (const [what, fields, param, says] of rows) {
      it(`422 ${JSON.stringify(param).slice(0, 40)}: ${what}`, async () => {
        const answer = await ours.call('POST', '/v1/chatapp', { json: { to: '+14165550123', text: 'Hi.', ...fields } });
        assertRefused(answer, 422, 'validation_error', param, says);
      });
    }
  });
}

it('what lies at a limit is accepted, and what was refused was not stored', async () => {
  const accepted: readonly Json[] = [
    { text: 'x' },
    image({ link: `https://example.com/${'x'.repeat(8_172)}`, caption: 'x'.repeat(4_096) }),
    document({ link: 'https://8.8.8.8:8443/a?b=c#d', filename: 'x'.repeat(255) }),
    template({ name: 'x'.repeat(512), language: { code: 'x'.repeat(35) }, components: nested(20) }),
    template({ components: [2 ** 53 - 1, 1e-300, 0.1, 'x\n'] }),
    template({ components: 'any JSON' }),
  ];
  for (const fields of accepted) {
    const answer = await ours.call('POST', '/v1/chatapp', { json: { to: '+14165550123', text: 'Hi.', ...fields } });
    assert.equal(answer.status, 202, answer.text);
  }
  const { rowCount } = await service.pool.query('SELECT FROM chat_messages');
  assert.equal(rowCount, accepted.length);
});
