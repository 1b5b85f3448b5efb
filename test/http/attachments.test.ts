import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { FileStoreUnavailable } from '../../src/store/files/file-store.ts';
import { allIds, contentOf } from '../store/files/store-contract.ts';
import { assertRefused, startService, useService } from './service.ts';

/** POST /v1/emails with attachments. Each field rule is tested in test/domain/attachments.test.ts. */
type Fields = Record<string, unknown>;
const MB = 1_048_576;
const base64 = (content: string | Buffer) => Buffer.from(content).toString('base64');
const file = (fields: Fields = {}) => ({ filename: 'a.txt', content: base64('hello'), ...fields });
const files = (count: number) => Array.from({ length: count }, () => file());

const service = await useService();
const org = await service.organization();

/** How many emails, rows of attachments and files are stored. */
async function stored(): Promise<[emails: number, rows: number, files: number]> {
  const { rows } = await service.pool.query<{ emails: number; rows: number }>(
    'SELECT (SELECT count(*)::int FROM emails) AS emails, (SELECT count(*)::int FROM attachments) AS rows',
  );
  return [rows[0]?.emails ?? 0, rows[0]?.rows ?? 0, (await allIds(service.files)).length];
}

/** The request is refused and stores nothing. */
async function refuses(attachments: unknown, code: string, param: string, message: string): Promise<void> {
  const before = await stored();
  assertRefused(await org.send({ attachments }), 422, code, param, message);
  assert.deepEqual(await stored(), before);
}

describe('an email with attachments', () => {
  it('returns their metadata in order and without links', async () => {
    const id = await org.sent({
      html: '<img src="cid:logo@example.com">',
      attachments: [
        file(),
        file({ filename: 'Übersicht.pdf', content: base64('%PDF'), content_id: 'logo@example.com' }),
        file({ filename: 'data', content: '', content_type: 'text/csv; charset=utf-8', content_id: null, path: null }),
      ],
    });
    const attachments = (await org.email(id))['attachments'] as Fields[];
    const rows = attachments.map(({ id: attachmentId, ...rest }) => {
      assert.match(String(attachmentId), /^att_[0-9a-z]{26}$/);
      return Object.values(rest);
    });
    assert.deepEqual(Object.keys(attachments[0] ?? {}), [
      ...['id', 'filename', 'content_type', 'size', 'content_id', 'inline'],
    ]);
    assert.deepEqual(rows, [
      ['a.txt', 'text/plain', 5, null, false],
      ['Übersicht.pdf', 'application/pdf', 4, 'logo@example.com', true],
      ['data', 'text/csv; charset=utf-8', 0, null, false],
    ]);
    assert.equal(String(await contentOf(service.files, String(attachments[0]?.['id']))), 'hello');
  });

  it('has none if attachments is null or empty', async () => {
    for (const attachments of [null, []]) {
      assert.deepEqual((await org.email(await org.sent({ attachments })))['attachments'], []);
    }
  });

  it('is replayed under its idempotency key and stores no file twice', async () => {
    const call = { json: org.mail({ attachments: [file()] }), headers: { 'idempotency-key': 'attached' } };
    const first = await org.call('POST', '/v1/emails', call);
    const before = await stored();
    const second = await org.call('POST', '/v1/emails', call);
    assert.equal(second.text, first.text);
    assert.equal(second.headers['idempotent-replayed'], 'true');
    assert.deepEqual(await stored(), before);
  });
});

describe('422 validation_error for the fields of an attachment', () => {
  it('attachments is an array of at most 20 objects', async () => {
    await org.sent({ attachments: files(20) });
    await refuses(files(21), 'validation_error', 'attachments', 'must have at most 20 items');
    await refuses(file(), 'validation_error', 'attachments', 'must be an array');
    await refuses([null], 'validation_error', 'attachments.0', 'must be an object');
  });

  for (const [name, fields, field, message] of [
    ['filename is required', { filename: undefined }, 'filename', 'is required'],
    ['filename has 1 to 255 characters', { filename: 'é'.repeat(256) }, 'filename', 'must be at most 255 characters'],
    ['filename is not a path', { filename: '../a' }, 'filename', 'must be a name without / or \\'],
    ['content or path is required', { content: undefined }, 'content', 'is required unless path is given'],
    ['content excludes path', { content: '', path: 'https://example.com/a' }, 'path', 'cannot be given together'],
    ['path has at most 8,192 characters', { content: null, path: 'a'.repeat(8_193) }, 'path', 'must be at most 8192'],
    ['content_type is a MIME type', { content_type: 'pdf' }, 'content_type', 'must be a MIME type'],
    ['content_id has 1 to 128 characters', { content_id: 'a'.repeat(129) }, 'content_id', 'must be 1 to 128'],
  ] as const) {
    it(name, () => refuses([file(), file(fields)], 'validation_error', `attachments.1.${field}`, message));
  }

  it('content_id is unique within the email', async () => {
    const attachments = [file({ content_id: 'x' }), file(), file({ content_id: 'x' })];
    await refuses(attachments, 'validation_error', 'attachments.2.content_id', 'appears twice');
  });

  const batchWith = (attachments: unknown) =>
    org.call('POST', '/v1/emails/batch', { json: { emails: [org.mail(), org.mail({ attachments })] } });

  it('a batch does not accept attachments', async () => {
    const answer = await batchWith(files(1));
    assertRefused(answer, 422, 'validation_error', 'emails.1.attachments', 'is not accepted in a batch');
  });

  for (const attachments of [[], null]) {
    it(`a batch accepts ${JSON.stringify(attachments)} as no attachments`, async () => {
      assert.equal((await batchWith(attachments)).status, 202);
    });
  }
});

describe('422 invalid_attachment for a file that cannot be sent', () => {
  for (const [name, fields, field, message] of [
    ['blocked by its extension', { filename: 'x.pdf.ExE' }, 'filename', '"x.pdf.ExE" is of a blocked type (.exe)'],
    ['blocked by a disguised extension', { filename: 'a.exe.' }, 'filename', '"a.exe." has a name that ends in a dot'],
    ['blocked by its type', { content_type: 'application/x-sh' }, 'content_type', '"a.txt" is of a blocked type (app'],
    ['blocked by its content', { content: base64('#!/bin/sh\n') }, 'content', '"a.txt" contains a program'],
    ['content is not base64', { content: 'YR==' }, 'content', '"a.txt" is not base64'],
  ] as const) {
    it(name, () => refuses([file(), file(fields)], 'invalid_attachment', `attachments.1.${field}`, message));
  }

  it('more than 30 MB together, to the byte', async () => {
    const half = file({ content: base64(Buffer.alloc(15 * MB, 1)) });
    await org.sent({ attachments: [half, half] });
    const message = '"last.txt" makes the attachments larger than 30 MB together';
    const last = file({ filename: 'last.txt', content: 'YQ==' });
    await refuses([half, half, last], 'invalid_attachment', 'attachments.2.content', message);
  });
});

describe('the order of checks', () => {
  const attachments = [file({ filename: 'a.exe' })];

  it('checks fields before the domain and the domain before the files', async () => {
    await org.addDomain('pending.example', false);
    const from = 'a@elsewhere.example';
    for (const [fields, status, code, param] of [
      [{ from, subject: '' }, 422, 'validation_error', 'subject'],
      [{ from }, 403, 'domain_not_found', 'from'],
      [{ from: 'a@pending.example' }, 403, 'domain_not_verified', 'from'],
      [{ scheduled_at: '2020-01-01T00:00:00Z' }, 422, 'validation_error', 'scheduled_at'],
      [{}, 422, 'invalid_attachment', 'attachments.0.filename'],
    ] as const) {
      assertRefused(await org.send({ ...fields, attachments }), status, code, param);
    }
  });
});

describe('the file store', () => {
  it('returns 503 and stores nothing while it fails, and accepts email without files', async (t) => {
    const broken = await startService({
      withFiles: async () => {
        throw new FileStoreUnavailable(new Error('ENOSPC: no space left on device'));
      },
    });
    t.after(broken.close);
    const other = await broken.organization();
    const answer = await other.send({ attachments: files(1) });
    assertRefused(answer, 503, 'unavailable', undefined, 'the service cannot reach its attachment store');
    assert.equal(answer.headers['retry-after'], '1');
    assert.equal((await broken.pool.query('SELECT FROM emails')).rowCount, 0);
    await other.sent();
    assert.ok(broken.log.some((line) => line.includes('ENOSPC')));
  });

  it('contains no name that a caller chose', async () => {
    const names = await readdir(service.folder, { recursive: true });
    assert.ok(names.some((name) => name.includes('att_')));
    for (const name of names) assert.match(name, /^(?:unfinished|[0-9a-z]{2}(?:\/att_[0-9a-z]{26})?)$/);
  });
});
