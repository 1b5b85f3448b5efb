import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { force } from '../store/mail.ts';
import { assertRefused, inFuture, useService } from './service.ts';

const CONTENT = {
  subject: 'Your receipt',
  html: '<p>Thank you.</p>',
  text: 'Thank you.',
  headers: { 'X-Order': '4711', 'X-Again': 'ü' },
};
const service = await useService();
const ours = await service.organization();

describe('the content of an email', () => {
  const content = (id: string) => ours.call('GET', `/v1/emails/${id}/content`);
  const erase = (id: string) => ours.call('DELETE', `/v1/emails/${id}/content`);

  async function sent(fields: object = CONTENT): Promise<string> {
    const id = await ours.sent({ ...fields });
    await force(service.pool, id, 'sent');
    return id;
  }

  it('is returned as sent, before and after it was sent', async () => {
    const id = await ours.sent({ ...CONTENT });
    for (let i = 0; i < 2; i++) {
      const { status, body } = await content(id);
      assert.deepEqual([status, body], [200, CONTENT]);
      await force(service.pool, id, 'delivered');
    }
    const plain = await ours.sent({ subject: 's', html: undefined, text: 't' });
    assert.deepEqual((await content(plain)).body, { subject: 's', html: null, text: 't', headers: {} });
  });

  it('is erased from the database with its files, and the record stays', async () => {
    const attachments = [{ filename: 'a.txt', content: Buffer.from('a file').toString('base64') }];
    const id = await sent({ ...CONTENT, attachments });
    const before = await ours.email(id);
    const [file] = before['attachments'] as { id: string }[];
    assert.ok(file && (await service.files.open(file.id)), 'the file is there');
    const path = `/v1/emails/${id}/attachments`;
    const links = async () => {
      const { body } = await ours.call('GET', path);
      return (body as { attachments: { download_url: string | null }[] }).attachments.map((each) => each.download_url);
    };
    const url = new URL((await links())[0] ?? '');

    const { status, text } = await erase(id);
    assert.deepEqual([status, text], [204, '']);
    assertRefused(await content(id), 410, 'content_erased');
    assert.deepEqual(await ours.email(id), { ...before, headers: {} });
    assert.equal(await service.files.open(file.id), undefined);
    assert.deepEqual(await links(), [null]);
    assertRefused(await ours.call('GET', url.pathname + url.search), 404, 'not_found');
    assert.equal((await erase(id)).status, 204, 'erasing again changes nothing');
    const { rows } = await service.pool.query(
      `SELECT headers, sealed_headers, (SELECT count(*)::int FROM email_bodies WHERE email_id = emails.id) AS bodies
       FROM emails WHERE id = $1`,
      [id],
    );
    assert.deepEqual(rows, [{ headers: {}, sealed_headers: null, bodies: 0 }]);
  });

  it('is not erased while the email is queued or scheduled', async () => {
    const scheduled = await ours.sent({ ...CONTENT, scheduled_at: inFuture({ hours: 1 }) });
    for (const id of [await ours.sent({ ...CONTENT }), scheduled]) {
      assertRefused(await erase(id), 409, 'conflict');
      assert.equal((await content(id)).status, 200);
    }
    await ours.call('POST', `/v1/emails/${scheduled}/cancel`);
    assert.equal((await erase(scheduled)).status, 204);
  });

  it('is not erased while copies of a marketing email are still to be sent', async () => {
    const id = await sent({ ...CONTENT, marketing: true, to: ['a@example.net', 'b@example.net'] });
    await service.pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status) VALUES ($1, 'b@example.net', 'queued')`,
      [id],
    );
    assertRefused(await erase(id), 409, 'conflict');
    assert.equal((await content(id)).status, 200);
  });

  it('is kept if the store cannot delete its files', async () => {
    const id = await sent({ ...CONTENT, attachments: [{ filename: 'a.txt', content: 'aGk=' }] });
    const { remove } = service.files;
    (service.files as { remove: unknown }).remove = () => Promise.reject(new Error('away'));
    assertRefused(await erase(id), 500, 'internal_error');
    (service.files as { remove: unknown }).remove = remove;
    assert.equal((await content(id)).status, 200);
    assert.equal((await erase(id)).status, 204);
  });
});
