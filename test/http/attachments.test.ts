import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { FileStoreUnavailable } from '../../src/store/files/file-store.ts';
import { allIds, contentOf } from '../store/files/store-contract.ts';
import { assertRefused, type Organization, type Service, startService } from './service.ts';

const MB = 1_048_576;
const base64 = (content: string | Buffer) => Buffer.from(content).toString('base64');
const file = (fields: Record<string, unknown> = {}) => ({ filename: 'a.txt', content: base64('hello'), ...fields });

let service: Service;
let org: Organization;
before(async () => {
  service = await startService();
  org = await service.organization();
});
after(() => service.close());

/** How many emails, rows of attachments and files there are. */
async function stored(): Promise<[emails: number, rows: number, files: number]> {
  const { rows } = await service.pool.query<{ emails: number; rows: number }>(
    'SELECT (SELECT count(*)::int FROM emails) AS emails, (SELECT count(*)::int FROM attachments) AS rows',
  );
  return [rows[0]?.emails ?? 0, rows[0]?.rows ?? 0, (await allIds(service.files)).length];
}

/** The request is refused, and nothing of it is kept. */
async function refuses(
  attachments: unknown,
  code: 'validation_error' | 'invalid_attachment',
  param: string,
  says: string | RegExp,
): Promise<void> {
  const before = await stored();
  assertRefused(await org.send({ attachments }), 422, code, param, says);
  assert.deepEqual(await stored(), before, 'nothing is queued');
}

describe('an email with files', () => {
  it('is shown with what was sent along, in order and without links', async () => {
    const id = await org.sent({
      html: '<img src="cid:logo@example.com">',
      attachments: [
        file(),
        file({ filename: 'Übersicht.pdf', content: base64('%PDF'), content_id: 'logo@example.com' }),
        file({ filename: 'data', content: '', content_type: 'text/csv; charset=utf-8', content_id: null, path: null }),
      ],
    });
    const { attachments } = (await org.email(id)) as { attachments: Record<string, unknown>[] };
    for (const each of attachments) assert.match(String(each['id']), /^att_[0-9a-z]{26}$/);
    assert.deepEqual(
      attachments.map((each) => ({ ...each, id: undefined })),
      [
        { id: undefined, filename: 'a.txt', content_type: 'text/plain', size: 5, content_id: null, inline: false },
        {
          id: undefined,
          filename: 'Übersicht.pdf',
          content_type: 'application/pdf',
          size: 4,
          content_id: 'logo@example.com',
          inline: true,
        },
        {
          id: undefined,
          filename: 'data',
          content_type: 'text/csv; charset=utf-8',
          size: 0,
          content_id: null,
          inline: false,
        },
      ],
    );
    assert.equal(String(await contentOf(service.files, String(attachments[0]?.['id']))), 'hello');
  });

  it('may have none, said in three ways', async () => {
    for (const attachments of [undefined, null, []]) {
      const id = await org.sent({ attachments });
      assert.deepEqual((await org.email(id))['attachments'], []);
    }
  });

  it('is replayed by its key with no file stored twice', async () => {
    const call = { json: org.mail({ attachments: [file()] }), headers: { 'idempotency-key': 'attached' } };
    const first = await org.call('POST', '/v1/emails', call);
    const before = await stored();
    const second = await org.call('POST', '/v1/emails', call);
    assert.equal(second.text, first.text);
    assert.equal(second.headers['idempotent-replayed'], 'true');
    assert.deepEqual(await stored(), before);
  });
});

describe('the fields of a file', () => {
  const invalid = (fields: Record<string, unknown>, field: string, says: string | RegExp) =>
    refuses([file(), file(fields)], 'validation_error', `attachments.1.${field}`, says);

  it('attachments: an array of at most 20', async () => {
    await org.sent({ attachments: Array.from({ length: 20 }, () => file()) });
    await refuses(
      Array.from({ length: 21 }, () => file()),
      'validation_error',
      'attachments',
      'must hold at most 20 items',
    );
    await refuses('x', 'validation_error', 'attachments', 'must be an array');
    await refuses(file(), 'validation_error', 'attachments', 'must be an array');
    for (const item of ['x', 1, null, []])
      await refuses([item], 'validation_error', 'attachments.0', 'must be an object');
  });

  it('filename: required, 1 to 255 characters, no separators, no control characters', async () => {
    await invalid({ filename: undefined }, 'filename', 'is required');
    await invalid({ filename: null }, 'filename', 'must be a string');
    await invalid({ filename: '' }, 'filename', 'must not be empty');
    await org.sent({ attachments: [file({ filename: `${'é'.repeat(251)}.txt` })] });
    await invalid({ filename: `${'é'.repeat(252)}.txt` }, 'filename', 'must be at most 255 characters');
    for (const filename of ['a/b.txt', 'a\\b.txt', '../../etc/passwd']) {
      await invalid({ filename }, 'filename', 'must be a name without / or \\');
    }
    await invalid({ filename: '..' }, 'filename', 'must be more than dots');
    for (const filename of ['a\r\nX-Injected: 1.txt', 'a.exe\0.pdf', 'a\u2028b']) {
      await invalid({ filename }, 'filename', 'must not hold control characters');
    }
  });

  it('content and path: exactly one of them', async () => {
    await invalid({ content: undefined }, 'content', 'is required unless path is given');
    await invalid({ content: null, path: null }, 'content', 'is required unless path is given');
    await invalid({ path: 'https://example.com/a' }, 'path', 'cannot be given together with content');
    await invalid({ content: '', path: 'https://example.com/a' }, 'path', 'cannot be given together with content');
    await invalid({ content: 1 }, 'content', 'must be a string');
    const path = `https://example.com/${'a'.repeat(8_200)}`;
    await invalid({ content: undefined, path }, 'path', 'must be at most 8192 characters');
  });

  it('content_type: a MIME type', async () => {
    for (const content_type of ['', 'pdf', 'text/plain\r\nX: y', 'a b/c']) {
      await invalid({ content_type }, 'content_type', 'must be a MIME type');
    }
    await invalid({ content_type: 'multipart/mixed' }, 'content_type', 'must be the type of one file');
  });

  it('content_id: 1 to 128 of its letters, unique within the email', async () => {
    await org.sent({ attachments: [file({ content_id: 'a'.repeat(128) }), file({ content_id: 'A._@-1' })] });
    await invalid({ content_id: 'a'.repeat(129) }, 'content_id', 'must be 1 to 128 characters');
    await invalid({ content_id: '' }, 'content_id', 'must be 1 to 128 characters');
    for (const content_id of ['a b', '<a>', 'é', 'a\r\nb'])
      await invalid({ content_id }, 'content_id', 'may hold only');
    await refuses(
      [file({ content_id: 'x' }), file(), file({ content_id: 'x' })],
      'validation_error',
      'attachments.2.content_id',
      'appears twice',
    );
  });

  it('no others', async () => {
    await invalid({ url: 'https://example.com' }, 'url', 'is not a known field');
    await invalid({ size: 5 }, 'size', 'is not a known field');
  });

  it('none in a batch', async () => {
    for (const attachments of [[], [file()], null]) {
      const answer = await org.call('POST', '/v1/emails/batch', {
        json: { emails: [org.mail(), org.mail({ attachments })] },
      });
      assertRefused(answer, 422, 'validation_error', 'emails.1.attachments', 'is not accepted in a batch');
    }
  });
});

describe('what a file may be', () => {
  const invalid = (fields: Record<string, unknown>, field: string, says: string) =>
    refuses([file(), file(fields)], 'invalid_attachment', `attachments.1.${field}`, says);

  it('no executable, script or installer, by its name', async () => {
    for (const filename of [
      'a.exe',
      'a.bat',
      'a.cmd',
      'a.js',
      'a.vbs',
      'a.msi',
      'a.ps1',
      'a.scr',
      'A.ExE',
      'x.pdf.exe',
    ]) {
      const extension = filename.split('.').at(-1)?.toLowerCase();
      await invalid({ filename }, 'filename', `"${filename}" is of a blocked type (.${extension})`);
    }
    for (const filename of ['in\u202Efdp.exe', 'a.exe.', 'a.exe ', 'a.exe:x.pdf', 'a.pdf\u200B']) {
      await invalid({ filename }, 'filename', `"${filename}" has `);
    }
    await org.sent({ attachments: [file({ filename: 'a.json' }), file({ filename: 'setup.exe.pdf' })] });
  });

  it('nor by the type it says', async () => {
    const content_type = 'application/x-msdownload';
    await invalid({ content_type }, 'content_type', `"a.txt" is of a blocked type (${content_type})`);
  });

  it('nor by what it holds', async () => {
    for (const content of ['MZ\x90\0', '\x7FELF\x02', '#!/bin/sh\n']) {
      const encoded = Buffer.from(content, 'latin1').toString('base64');
      await invalid({ filename: 'a.pdf', content: encoded }, 'content', '"a.pdf" holds a program, whatever its name');
    }
  });

  it('base64 in its one form', async () => {
    for (const content of [
      'aG k=',
      'aGk',
      'YR==',
      '-_-_',
      'data:text/plain;base64,aGk=',
      'aGk=\n',
      'YQ==YQ==',
      '😀',
      '====',
    ]) {
      await invalid({ content }, 'content', '"a.txt" is not base64');
    }
  });

  it('30 MB in all, to the byte', async () => {
    const half = base64(Buffer.alloc(15 * MB, 1));
    const id = await org.sent({ attachments: [file({ content: half }), file({ content: half })] });
    assert.equal(((await org.email(id)) as { attachments: { size: number }[] }).attachments[1]?.size, 15 * MB);
    await refuses(
      [file({ content: half }), file({ content: half }), file({ filename: 'last.txt', content: 'YQ==' })],
      'invalid_attachment',
      'attachments.2.content',
      '"last.txt" makes the attachments larger than 30 MB together',
    );
  });
});

describe('the order of checks', () => {
  const bad = [file({ filename: 'a.exe' })];

  it('fields before the domain before the files', async () => {
    const elsewhere = { from: 'a@elsewhere.example', attachments: bad };
    assertRefused(await org.send({ ...elsewhere, subject: '' }), 422, 'validation_error', 'subject');
    assertRefused(await org.send(elsewhere), 403, 'domain_not_found', 'from');
    await org.addDomain('pending.example', false);
    assertRefused(await org.send({ ...elsewhere, from: 'a@pending.example' }), 403, 'domain_not_verified', 'from');
    const past = { attachments: bad, scheduled_at: '2020-01-01T00:00:00Z' };
    assertRefused(await org.send(past), 422, 'validation_error', 'scheduled_at');
    assertRefused(await org.send({ attachments: bad }), 422, 'invalid_attachment', 'attachments.0.filename');
  });

  it('a key that was used with bad files is free again', async () => {
    const headers = { 'idempotency-key': 'bad files' };
    const refused = await org.call('POST', '/v1/emails', { headers, json: org.mail({ attachments: bad }) });
    assertRefused(refused, 422, 'invalid_attachment', 'attachments.0.filename');
    const taken = await org.call('POST', '/v1/emails', { headers, json: org.mail({ attachments: [file()] }) });
    assert.equal(taken.status, 202, taken.text);
  });
});

describe('a store that fails', () => {
  it('is told as 503, and nothing is queued; email without files goes on', async (t) => {
    const broken = await startService({
      withFiles: async () => {
        throw new FileStoreUnavailable(new Error('ENOSPC: no space left on device'));
      },
    });
    t.after(broken.close);
    const other = await broken.organization();
    const answer = await other.send({ attachments: [file()] });
    assertRefused(answer, 503, 'unavailable', undefined, 'the service cannot reach its attachment store');
    assert.equal(answer.headers['retry-after'], '1');
    const { rowCount } = await broken.pool.query('SELECT FROM emails');
    assert.equal(rowCount, 0);
    await other.sent();
    assert.ok(broken.log.some((line) => line.includes('ENOSPC')));
  });

  it('never sees a name that a caller chose', async () => {
    const names = await readdir(service.folder, { recursive: true });
    assert.ok(names.some((name) => name.includes('att_')));
    for (const name of names) assert.match(name, /^(?:unfinished|[0-9a-z]{2}(?:\/att_[0-9a-z]{26})?)$/, join(name));
  });
});
