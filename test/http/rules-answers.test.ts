import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BOUNCE_REASONS } from '../../src/domain/email/email.ts';
import { makeDownloadLinks } from '../../src/domain/email/download-links.ts';
import { project } from '../../src/projection/emails.ts';
import { type Answer, assertRefused, inFuture, SECRET_KEY, TIMESTAMP, useService } from './service.ts';

/** Rules of interface.md about what answers hold, whichever request they answer. */
type Json = Record<string, unknown>;

const service = await useService();
const ours = await service.organization();

const FILE = { filename: 'a.txt', content: 'YQ==' };

async function done(method: string, path: string, json?: unknown): Promise<Json> {
  const answer = await ours.call(method, path, { json });
  assert.ok(answer.status < 300, answer.text);
  return answer.body as Json;
}

/** Every value in an answer that has a name, however deep. */
function named(value: unknown): [name: string, value: unknown][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [[name, inner] as [string, unknown], ...named(inner)]);
}

/** An answer of each operation that tells of an email, a batch or a file. */
async function answers(): Promise<Json[]> {
  const scheduled = { scheduled_at: inFuture({ hours: 1 }) };
  const sent = await done('POST', '/v1/emails', ours.mail({ ...scheduled, attachments: [FILE] }));
  const email = `/v1/emails/${String(sent['id'])}`;
  const batch = await done('POST', '/v1/emails/batch', { emails: [ours.mail(), ours.mail(scheduled)] });
  const moved = await done('PATCH', email, scheduled);
  const files = await done('GET', `${email}/attachments`);
  const [file] = files['attachments'] as { id: string }[];
  return [
    ...[sent, batch, moved, files],
    await done('GET', `${email}/attachments/${file?.id}`),
    await done('GET', email),
    await done('GET', '/v1/emails?limit=3'),
    await done('GET', '/v1/emails/batch'),
    await done('GET', `/v1/emails/batch/${String(batch['id'])}`),
    await done('POST', `/v1/emails/batch/${String(batch['id'])}/cancel`),
    await done('POST', `${email}/cancel`),
  ];
}

describe('in every answer', () => {
  it('a time is UTC with milliseconds, or null', async () => {
    const times = (await answers()).flatMap(named).filter(([name]) => name.endsWith('_at'));
    assert.ok(times.length > 20, `${times.length} times`);
    for (const [name, value] of times) {
      if (value !== null) assert.ok(typeof value === 'string' && TIMESTAMP.test(value), name);
    }
  });

  it('an id has the prefix of what it names', async () => {
    const ids = (await answers()).flatMap(named).filter(([name]) => name === 'id' || name === 'batch_id');
    const prefixes = new Set<string>();
    for (const [name, value] of ids) {
      if (value === null) continue;
      assert.ok(typeof value === 'string');
      assert.match(value, /^(?:em|att|bt)_[0-9a-z]{26}$/);
      if (name === 'batch_id') assert.match(value, /^bt_/);
      prefixes.add(value.split('_', 1).join());
    }
    assert.deepEqual([...prefixes].sort(), ['att', 'bt', 'em']);
  });
});

describe('a bounced email', () => {
  it('shows any reason of the table, and that alone with the status bounced', async () => {
    for (const reason of BOUNCE_REASONS) {
      const id = await ours.sent();
      await project(service.pool, 'sent', [{ id }]);
      assert.equal((await ours.email(id))['bounce_reason'], null);
      await project(service.pool, 'bounced', [{ id, error: '550 no', bounce_reason: reason }]);
      const { status, bounce_reason: shown } = await ours.email(id);
      assert.deepEqual([status, shown], ['bounced', reason]);
    }
    assert.equal(BOUNCE_REASONS.length, 13);
  });
});

describe('a download link', () => {
  const open = (url: string | null | undefined): Promise<Answer> =>
    service.call('GET', String(url).replace(service.url, ''));

  it('that has ended is replaced by asking for the list again', async () => {
    const emailId = await ours.sent({ attachments: [FILE] });
    const list = async () => {
      const { attachments } = await done('GET', `/v1/emails/${emailId}/attachments`);
      return (attachments as { id: string; download_url: string | null }[])[0];
    };
    const id = String((await list())?.id);
    const ended = makeDownloadLinks(SECRET_KEY).make(emailId, id, Math.floor(Date.now() / 1_000) - 60);
    assertRefused(await open(ended), 404, 'not_found');
    const fresh = await open((await list())?.download_url);
    assert.deepEqual([fresh.status, fresh.text], [200, 'a']);
  });
});
