import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bodyOf, type Organization, useService } from './service.ts';

const service = await useService();
const org: Organization = await service.organization();

interface Refusal {
  readonly error: {
    readonly message: string;
    readonly errors: readonly { readonly param?: string; message: string }[];
  };
}

async function refusal(method: string, path: string, json?: unknown): Promise<Refusal['error']> {
  const answer = await org.call(method, path, json === undefined ? {} : { json });
  return bodyOf<Refusal>(answer, 422).error;
}
const send = (json: unknown) => refusal('POST', '/v1/emails', json);
const paramsOf = ({ errors }: Refusal['error']) => errors.map(({ param }) => param);

describe('a validation error lists every fault of the request', () => {
  it('of required fields', async () => {
    assert.deepEqual(paramsOf(await send({})), ['from', 'to', 'subject', 'html']);
  });

  it('of fields, items, headers and unknown fields', async () => {
    const mail = org.mail({
      to: ['a', 'b@x.test', 'c'],
      subject: '',
      tags: [{ name: 'ö', value: 'x' }],
      headers: { From: 'x', 'X-Fine': 'x', 'X-Bad': 'a\nb' },
      replyTo: 'x',
      nonsense: 1,
    });
    const params = paramsOf(await send(mail)).sort();
    assert.deepEqual(
      params,
      ['headers.From', 'headers.X-Bad', 'nonsense', 'replyTo', 'subject', 'tags.0.name', 'to.0', 'to.2'].sort(),
    );
  });

  it('although a rule of an object or array relies on its parts', async () => {
    const faulty = { tags: [1, null], headers: { 'X-A': 1 }, attachments: [null, 1] };
    assert.deepEqual(paramsOf(await send(org.mail(faulty))).sort(), [
      ...['attachments.0', 'attachments.1', 'headers.X-A', 'tags.0', 'tags.1'],
    ]);
  });

  it('of query parameters', async () => {
    const params = paramsOf(await refusal('GET', '/v1/emails?limit=0&page=2&status=nope&to=nobody'));
    assert.deepEqual(params.sort(), ['limit', 'page', 'status', 'to']);
  });

  it('of the members of a batch, at most 50', async () => {
    const emails = Array.from({ length: 60 }, (_, index) => org.mail(index % 2 === 0 ? { subject: '', x: 1 } : {}));
    const some = await refusal('POST', '/v1/emails/batch', { emails: emails.slice(0, 4), foo: 1 });
    assert.deepEqual(paramsOf(some).sort(), [
      ...['emails.0.subject', 'emails.0.x', 'emails.2.subject', 'emails.2.x', 'foo'],
    ]);
    const { errors } = await refusal('POST', '/v1/emails/batch', { emails });
    assert.equal(errors.length, 50);
  });

  it('with a time that has passed in an earlier member of a batch', async () => {
    const emails = [org.mail({ scheduled_at: '2020-01-01T00:00:00Z' }), org.mail({ subject: '' })];
    assert.deepEqual(paramsOf(await refusal('POST', '/v1/emails/batch', { emails })), [
      'emails.0.scheduled_at',
      'emails.1.subject',
    ]);
  });

  it('once for each field, although a value may fit none of several types', async () => {
    assert.deepEqual(paramsOf(await refusal('GET', '/v1/emails?status=a&status=b')), ['status']);
  });

  it('but only the first of a request with thousands of values', async () => {
    const unknown = Object.fromEntries(Array.from({ length: 6_000 }, (_, index) => [`f${index}`, 1]));
    assert.deepEqual(paramsOf(await send({ ...org.mail(), ...unknown })), ['f0']);
  });
});

describe('an error of an unknown field suggests the one that was meant', () => {
  for (const [name, message] of [
    ['replyTo', 'replyTo: is not a known field; did you mean reply_to?'],
    ['send_at', 'send_at: is not a known field; did you mean scheduled_at?'],
    ['nonsense', 'nonsense: is not a known field'],
  ] as const) {
    it(name, async () => assert.equal((await send(org.mail({ [name]: 'x' }))).message, message));
  }

  it('in a file of an email, and in a query', async () => {
    const file = await send(org.mail({ attachments: [{ name: 'a.txt', filename: 'a.txt', content: 'aGk=' }] }));
    assert.equal(file.message, 'attachments.0.name: is not a known field; did you mean filename?');
    const query = await refusal('GET', '/v1/emails?page=2');
    assert.equal(query.message, 'page: is not a known parameter; did you mean cursor?');
  });
});
