import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { resendEmail } from '../../src/intake/resend.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { findContent } from '../../src/store/emails/message-details.ts';
import { SECRET_KEY, useService } from '../http/service.ts';
import { command, printed as printedWith } from './command-line.ts';

const service = await useService();
const ours = await service.organization();

const HOUR = 3_600_000;
const since = (hours: number) => new Date(Date.now() - hours * HOUR).toISOString();

async function failed(error: string, hours: number, fields: Record<string, unknown> = {}, by = ours): Promise<string> {
  const id = await by.sent(fields);
  await markFailed(id, error, hours);
  return id;
}

async function markFailed(id: string, error: string, hours: number): Promise<void> {
  await service.pool.query(
    `UPDATE emails SET status = 'failed', error = $2, last_event_at = now() - make_interval(hours => $3) WHERE id = $1`,
    [id, error, hours],
  );
}

const env = { DATABASE_URL: service.databaseUrl, SECRET_KEY, ATTACHMENT_STORE: `file:${service.folder}` };
const printed = <T>(...args: string[]) => printedWith<T>(['emails', 'retry', ...args], env);

interface Summary {
  readonly matched: number;
  readonly sent: readonly { readonly id: string; readonly sent_as: string }[];
  readonly refused: readonly { readonly id: string; readonly reason: string }[];
}

describe('emails retry', () => {
  it('sends the emails that failed since a time with an error again, once, with their attachments', async () => {
    const attachments = [{ filename: 'a.txt', content: Buffer.from('a file').toString('base64') }];
    const wrongToken = await failed('The token is wrong. Given up after 72 hours.', 1, { attachments, subject: 'One' });
    const old = await failed('The token is wrong. Given up after 72 hours.', 30);
    const other = await failed('Its attachments are lost.', 1);
    const sent = await ours.sent();
    const of = ['--organization', ours.id, '--status', 'failed', '--since', since(24)];
    const count = async () => (await service.pool.query('SELECT FROM emails')).rowCount;
    const before = await count();

    const listed = await printed<{ matched: number; emails: { id: string }[] }>(...of, '--dry-run');
    assert.deepEqual([listed.matched, listed.emails.map(({ id }) => id)], [2, [wrongToken, other]]);
    assert.equal(await count(), before, 'a dry run sends nothing');

    const first = await printed<Summary>(...of, '--error', 'token is wrong');
    assert.deepEqual([first.matched, first.sent.map(({ id }) => id), first.refused], [1, [wrongToken], []]);
    const again = first.sent[0]?.sent_as ?? '';
    const email = await ours.email(again);
    assert.deepEqual([email['subject'], email['status']], ['One', 'queued']);
    assert.equal((email['attachments'] as unknown[]).length, 1);
    const content = await findContent(service.pool, makeEmailContents(SECRET_KEY), ours.id, again);
    assert.equal(content?.text, 'Hi there.');

    const second = await printed<Summary>(...of, '--error', 'token is wrong');
    assert.deepEqual(second, { matched: 0, sent: [], refused: [] });
    assert.equal(await count(), (before ?? 0) + 1);
    for (const id of [old, other]) assert.equal((await ours.email(id))['status'], 'failed');
    assert.equal((await ours.email(sent))['status'], 'queued');
  });

  it('sends only the latest email again when the retries fail too, also after the idempotency keys expired', async () => {
    const theirs = await service.organization();
    const of = ['--organization', theirs.id, '--status', 'failed', '--since', since(24)];
    let latest = await failed('x', 1, {}, theirs);
    for (let retry = 0; retry < 3; retry++) {
      const { matched, sent } = await printed<Summary>(...of);
      assert.deepEqual([matched, sent.map(({ id }) => id)], [1, [latest]]);
      latest = sent[0]?.sent_as ?? '';
      await markFailed(latest, 'x', 1);
      await service.pool.query('DELETE FROM idempotency_keys');
    }
  });

  it('refuses an email that another command has sent again since it was listed', async () => {
    const theirs = await service.organization();
    const of = ['--organization', theirs.id, '--status', 'failed', '--since', since(24)];
    const id = await failed('x', 1, {}, theirs);
    await printed<Summary>(...of);
    await service.pool.query('UPDATE emails SET resent_as = NULL WHERE id = $1', [id]);
    const { sent, refused } = await printed<Summary>(...of);
    assert.deepEqual([sent, refused.map((each) => each.id)], [[], [id]]);
  });

  it('refuses an email that was reported, or resent in the dashboard, since it was listed', async () => {
    const theirs = await service.organization();
    const listed = async () => ({ id: await failed('x', 1, {}, theirs), status: 'failed' }) as const;
    const [reported, resent] = [await listed(), await listed()];
    await service.pool.query(`UPDATE emails SET status = 'delivered', error = NULL WHERE id = $1`, [reported.id]);
    await resendEmail(service.deps, theirs.id, { id: resent.id }, 'click');
    const count = async () => (await service.pool.query('SELECT FROM emails WHERE org_id = $1', [theirs.id])).rowCount;
    assert.equal(await count(), 3);
    for (const original of [reported, resent])
      await assert.rejects(resendEmail(service.deps, theirs.id, original, `retry ${original.id}`), {
        code: 'conflict',
      });
    assert.equal(await count(), 3);
  });

  for (const [name, fields] of [
    ['an email', {}],
    ['an email with a file', { attachments: [{ filename: 'a.txt', content: 'aGk=' }] }],
  ] as const) {
    it(`sends ${name} again once if it is interrupted and repeated after the idempotency keys expired`, async () => {
      const theirs = await service.organization();
      const args = ['--organization', theirs.id, '--status', 'failed', '--since', since(24)];
      const id = await failed('x', 1, fields, theirs);
      await service.pool.query(`
        CREATE FUNCTION interrupt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'interrupted'; END $$;
        CREATE TRIGGER interrupt BEFORE UPDATE OF resent_as ON emails FOR EACH ROW EXECUTE FUNCTION interrupt()`);
      try {
        await assert.rejects(command(['emails', 'retry', ...args], env), /interrupted/);
      } finally {
        await service.pool.query('DROP FUNCTION interrupt CASCADE');
      }
      await service.pool.query('DELETE FROM idempotency_keys');
      const { sent } = await printed<Summary>(...args);
      assert.deepEqual(
        sent.map((each) => each.id),
        [id],
      );
      const { rows } = await service.pool.query('SELECT id FROM emails WHERE org_id = $1 AND id <> $2', [
        theirs.id,
        id,
      ]);
      assert.deepEqual(rows, [{ id: sent[0]?.sent_as }]);
    });
  }

  it('is in the audit log, also after it ended with an error', async () => {
    const theirs = await service.organization();
    const args = [
      'emails',
      'retry',
      '--organization',
      theirs.id,
      '--status',
      'failed',
      '--since',
      '2026-03-01T00:00:00Z',
    ];
    await failed('x', 1, {}, theirs);
    const otherKey = { ...env, SECRET_KEY: 'another secret key for tests, and long enough' };
    await assert.rejects(command(args, otherKey), /sealed with a key that is not known/);
    const { rows } = await service.pool.query(
      `SELECT detail FROM audit_log WHERE action = 'emails.retry' AND org_id = $1`,
      [theirs.id],
    );
    assert.deepEqual(rows, [{ detail: { status: 'failed', since: '2026-03-01T00:00:00.000Z' } }]);
  });

  it('prints its result or error also if its audit entry cannot be recorded', async () => {
    const theirs = await service.organization();
    const id = await failed('x', 1, {}, theirs);
    const args = ['emails', 'retry', '--organization', theirs.id, '--status', 'failed', '--since', since(24)];
    await service.pool.query('ALTER TABLE audit_log RENAME TO hidden_log');
    try {
      const otherKey = { ...env, SECRET_KEY: 'another secret key for tests, and long enough' };
      await assert.rejects(command(args, otherKey), /sealed with a key that is not known/);
      const { code, out, err } = await command(args, env);
      assert.deepEqual([code, (JSON.parse(out) as Summary).sent.map((each) => each.id)], [0, [id]]);
      assert.match(err, /^warning: emails\.retry is missing in the audit log: .*"audit_log" does not exist\n$/);
    } finally {
      await service.pool.query('ALTER TABLE hidden_log RENAME TO audit_log');
    }
  });

  it('resends the others although the attachment store is unavailable', async () => {
    const theirs = await service.organization();
    const attachments = [{ filename: 'a.txt', content: Buffer.from('a file').toString('base64') }];
    const [withFile, without] = [await failed('x', 1, { attachments }, theirs), await failed('x', 1, {}, theirs)];
    const args = ['emails', 'retry', '--organization', theirs.id, '--status', 'failed', '--since', since(24)];
    const away = { ...env, ATTACHMENT_STORE: `file:${service.folder}/not-mounted` };
    const { sent, refused } = JSON.parse((await command(args, away)).out) as Summary;
    assert.deepEqual([sent.map(({ id }) => id), refused.map(({ id }) => id)], [[without], [withFile]]);
  });

  it('does not touch another organization', async () => {
    const theirs = await service.organization();
    await failed('x', 1);
    const of = ['--organization', theirs.id, '--status', 'failed', '--since', since(24)];
    assert.deepEqual(await printed<Summary>(...of), { matched: 0, sent: [], refused: [] });
  });

  for (const [mistake, args, sentence, exitCode = 1] of [
    [
      'a status that is not final',
      ['--status', 'queued', '--since', since(1)],
      /argument 'queued' is invalid\. Allowed choices are failed, rejected\.\n/,
      2,
    ],
    ['an invalid time', ['--status', 'failed', '--since', 'yesterday'], /^since: is not a time/],
  ] as const) {
    it(`refuses ${mistake}`, async () => {
      const { code, out, err } = await command(['emails', 'retry', '--organization', ours.id, ...args], env);
      assert.deepEqual([code, out], [exitCode, '']);
      assert.match(err, sentence);
    });
  }
});
