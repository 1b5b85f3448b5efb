import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { force } from '../store/mail.ts';
import { assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';

const CONTENT = {
  subject: 'Your receipt',
  html: '<p>Thank you.</p>',
  text: 'Thank you.',
  headers: { 'X-Order': '4711', 'X-Again': 'ü' },
};
const ABSENT = `em_${'0'.repeat(26)}`;

describe('the content of an email', () => {
  let service: Service;
  let ours: Organization;
  before(async () => {
    service = await startService();
    ours = await service.organization();
  });
  after(() => service.close());

  const content = (id: string, key = ours.key) => ours.call('GET', `/v1/emails/${id}/content`, { key });
  const erase = (id: string, key = ours.key) => ours.call('DELETE', `/v1/emails/${id}/content`, { key });

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

  it('is erased with its files, and the record stays', async () => {
    const attachments = [{ filename: 'a.txt', content: Buffer.from('a file').toString('base64') }];
    const id = await sent({ ...CONTENT, attachments });
    const before = await ours.email(id);
    const [file] = before['attachments'] as { id: string }[];
    assert.ok(file && (await service.files.open(file.id)), 'the file is there');
    const path = `/v1/emails/${id}/attachments`;
    const linked = (await ours.call('GET', path)).body as { attachments: { download_url: string | null }[] };
    const url = new URL(linked.attachments[0]?.download_url ?? '');

    const { status, text } = await erase(id);
    assert.deepEqual([status, text], [204, '']);
    assertRefused(await content(id), 410, 'content_erased');
    assert.deepEqual(await ours.email(id), { ...before, headers: {} });
    assert.equal(await service.files.open(file.id), undefined);
    const listed = (await ours.call('GET', path)).body as { attachments: { download_url: string | null }[] };
    assert.deepEqual(
      listed.attachments.map(({ download_url: link }) => link),
      [null],
    );
    assertRefused(await ours.call('GET', url.pathname + url.search), 404, 'not_found');
    assert.equal((await erase(id)).status, 204, 'erasing again changes nothing');
  });

  it('leaves nothing of it in the database', async () => {
    const id = await sent();
    await erase(id);
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

  it('stays when the store cannot delete its files', async () => {
    const id = await sent({ ...CONTENT, attachments: [{ filename: 'a.txt', content: 'aGk=' }] });
    const { remove } = service.files;
    (service.files as { remove: unknown }).remove = () => Promise.reject(new Error('away'));
    assertRefused(await erase(id), 500, 'internal_error');
    (service.files as { remove: unknown }).remove = remove;
    assert.equal((await content(id)).status, 200);
    assert.equal((await erase(id)).status, 204);
  });

  it('is 404 for an unknown email and for one of another organization', async () => {
    const theirs = await service.organization();
    const id = await sent();
    for (const answer of [
      await content(ABSENT),
      await erase(ABSENT),
      await theirs.call('GET', `/v1/emails/${id}/content`),
      await theirs.call('DELETE', `/v1/emails/${id}/content`),
    ]) {
      assertRefused(answer, 404, 'not_found');
    }
    assert.equal((await content(id)).status, 200);
  });

  it('is read with the scope read and erased with the scope manage', async () => {
    const id = await sent();
    const [reader, sender] = [await ours.addKey('read_only'), await ours.addKey('sending_access')];
    assert.equal((await content(id, reader)).status, 200);
    assertRefused(await content(id, sender), 403, 'insufficient_scope');
    for (const key of [reader, sender]) assertRefused(await erase(id, key), 403, 'insufficient_scope');
  });
});
