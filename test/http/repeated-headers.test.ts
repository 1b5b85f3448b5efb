import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, useService } from './service.ts';

/** interface.md, header rule 2: a name appears only once. JSON can hold it twice. */
const service = await useService();
const ours = await service.organization();

const HEADERS = '"headers": {"X-A": "1", "X-B": "{\\"X-A\\": \\"}", "X-A": "2"}';
/** Makes a body so long that it is parsed while it arrives. */
const LONG = 'a'.repeat(200_000);

function send(path: string, raw: string) {
  return ours.call('POST', path, { raw, headers: { 'content-type': 'application/json' } });
}
/** The JSON of an email, with more members as they are written. */
function email(more: string, fields: Record<string, unknown> = {}): string {
  return JSON.stringify(ours.mail(fields)).replace(/}$/, `, ${more}}`);
}

describe('a header name that JSON holds twice', () => {
  for (const [size, fields] of [
    ['short', {}],
    ['long', { html: LONG }],
  ] as const) {
    it(`is refused in a ${size} body`, async () => {
      const answer = await send('/v1/emails', email(HEADERS, fields));
      assertRefused(answer, 422, 'validation_error', 'headers.X-A');
    });

    it(`is refused in a ${size} batch, with the position of its email`, async () => {
      const emails = [email('"headers": {"X-A": "1"}', fields), email('"headers": {"X-A": "1"}'), email(HEADERS)];
      const answer = await send('/v1/emails/batch', `{"emails": [${emails.join()}]}`);
      assertRefused(answer, 422, 'validation_error', 'emails.2.headers.X-A');
    });
  }

  it('is refused however it is spelled', async () => {
    const spelled = String.raw`"headers" : { "X-\u0041":"1" , "X-A" : "2" }`;
    assertRefused(await send('/v1/emails', email(spelled)), 422, 'validation_error', 'headers.X-A');
  });

  it('is not found in a text that only looks like headers', async () => {
    const { status } = await send('/v1/emails', email('"headers": {"X-A": "1"}', { text: `{${HEADERS}}` }));
    assert.equal(status, 202);
  });

  it('does not concern other fields: the last value counts', async () => {
    const { status, body } = await send('/v1/emails', email('"subject": "First", "subject": "Last"'));
    assert.equal(status, 202);
    assert.equal((await ours.email((body as { id: string }).id))['subject'], 'Last');
  });
});
