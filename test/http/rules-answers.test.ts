import assert from 'node:assert/strict';
import { it } from 'node:test';
import { BOUNCE_REASONS } from '../../src/domain/email/email.ts';
import { project } from '../../src/projection/emails.ts';
import { inFuture, TIMESTAMP, useService } from './service.ts';

/** Rules of interface.md about the answers to all requests. */
type Json = Record<string, unknown>;

const service = await useService();
const ours = await service.organization();

const ID = /^(?:em|att|bt)_[0-9a-z]{26}$/;
const FILE = { filename: 'a.txt', content: 'YQ==' };

async function request(method: string, path: string, json?: unknown): Promise<Json> {
  const answer = await ours.call(method, path, { json });
  assert.ok(answer.status < 300, answer.text);
  return answer.body as Json;
}

/** Every named value in an answer, nested ones included. */
function named(value: unknown): [name: string, value: unknown][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [[name, inner] as [string, unknown], ...named(inner)]);
}

/** An answer of each operation about emails, batches and files. */
async function answers(): Promise<Json[]> {
  const scheduled = { scheduled_at: inFuture({ hours: 1 }) };
  const sent = await request('POST', '/v1/emails', ours.mail({ ...scheduled, attachments: [FILE] }));
  const email = `/v1/emails/${String(sent['id'])}`;
  const batch = await request('POST', '/v1/emails/batch', { emails: [ours.mail(), ours.mail(scheduled)] });
  const moved = await request('PATCH', email, scheduled);
  const files = await request('GET', `${email}/attachments`);
  const [file] = files['attachments'] as { id: string }[];
  return [
    ...[sent, batch, moved, files],
    await request('GET', `${email}/attachments/${file?.id}`),
    await request('GET', email),
    await request('GET', '/v1/emails?limit=3'),
    await request('GET', '/v1/emails/batch'),
    await request('GET', `/v1/emails/batch/${String(batch['id'])}`),
    await request('POST', `/v1/emails/batch/${String(batch['id'])}/cancel`),
    await request('POST', `${email}/cancel`),
  ];
}

it('a time is UTC with milliseconds or null, and an id has the prefix of its kind, in every answer', async () => {
  const values = (await answers()).flatMap(named);
  const times = values.filter(([name, value]) => name.endsWith('_at') && value !== null);
  assert.ok(times.length > 20, `${times.length} times`);
  for (const [name, value] of times) assert.match(String(value), TIMESTAMP, name);
  const ids = values.filter(([name, value]) => ['id', 'batch_id'].includes(name) && value !== null);
  for (const [name, value] of ids) assert.match(String(value), name === 'id' ? ID : /^bt_/);
  const prefixes = new Set(ids.map(([, value]) => String(value).split('_', 1).join()));
  assert.deepEqual([...prefixes].sort(), ['att', 'bt', 'em']);
});

it('bounce_reason is any reason of the table, and null unless the status is bounced', async () => {
  for (const reason of BOUNCE_REASONS) {
    const id = await ours.sent();
    await project(service.pool, 'sent', [{ id }]);
    assert.equal((await ours.email(id))['bounce_reason'], null);
    await project(service.pool, 'bounced', [{ id, error: '550 no', bounce_reason: reason }]);
    const { status, bounce_reason: shown } = await ours.email(id);
    assert.deepEqual([status, shown], ['bounced', reason]);
  }
});
