import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Options, Sendwright } from '../../client/index.ts';

const VALID = { baseUrl: 'https://mail.example.com', apiKey: 'sw_live_1' };
const NEEDED = 'an http or https URL such as https://mail.example.com is required';

describe('new Sendwright', () => {
  for (const [what, options, message] of [
    ['a URL without a scheme', { baseUrl: 'a:3000' }, `"a:3000" is not an http or https URL; ${NEEDED}`],
    ['no URL', { baseUrl: undefined }, `is missing; ${NEEDED}`],
    ['a URL with credentials', { baseUrl: 'https://a:b@mail.example.com' }, `contains credentials; ${NEEDED}`],
    ['a URL with a query', { baseUrl: 'https://mail.example.com/?a=b' }, `has a query or a fragment; ${NEEDED}`],
    ['a key of white space', { apiKey: ' \n' }, 'is missing; an API key of the service (sw_live_…) is required'],
    [
      'a key with a line break inside',
      { apiKey: 'sw_live_1\nsw_live_2' },
      'contains characters that no key has; only visible ASCII characters are allowed',
    ],
    ['a timeout of 0', { timeout: 0 }, 'is not a whole number of milliseconds; 1 to 2147483647 are allowed'],
    ['negative retries', { retries: -1 }, 'is not a whole number; 0 and more are allowed'],
  ] as const) {
    it(`refuses ${what} without a request`, () => {
      const param = Object.keys(options)[0] ?? '';
      const fetch = () => assert.fail('no request is made');
      assert.throws(() => new Sendwright({ ...VALID, fetch, ...options } as unknown as Options), {
        name: 'SendwrightError',
        code: 'invalid_argument',
        param,
        message: `${param}: ${message}`,
      });
    });
  }

  it('accepts a URL with a path and slashes at its end, and a key with a line break at its end', async () => {
    const requests: Request[] = [];
    const sendwright = new Sendwright({
      baseUrl: 'https://example.com/mail//',
      apiKey: 'sw_live_1\n',
      fetch: async (input, init) => {
        requests.push(new Request(input, init));
        return Response.json({ tags: [] });
      },
    });
    assert.deepEqual(await sendwright.emails.tags(), []);
    const [request] = requests;
    assert.equal(request?.url, 'https://example.com/mail/v1/emails/tags');
    assert.equal(request.headers.get('authorization'), 'Bearer sw_live_1');
  });
});
