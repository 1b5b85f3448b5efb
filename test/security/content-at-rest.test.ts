import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { findEmail } from '../../src/store/emails/emails.ts';
import { findContent } from '../../src/store/emails/message-details.ts';
import { type Organization, SECRET_KEY, type Service, startService } from '../http/service.ts';
import { acceptOne } from '../store/mail.ts';
import { foundIn } from './canaries.ts';

const CANARIES = { html: 'canaryhtmlbody', text: 'canarytextbody', header: 'canaryheadervalue' };
const FIELDS = {
  html: `<p>${CANARIES.html}</p>`,
  text: CANARIES.text,
  headers: { 'X-Canary': CANARIES.header },
};

describe('bodies and custom headers are encrypted at rest', () => {
  let service: Service;
  let ours: Organization;
  before(async () => {
    service = await startService();
    ours = await service.organization();
  });
  after(() => service.close());

  /** Every row of every table, as text; bytes as text too. */
  async function dump(): Promise<string> {
    const { rows: columns } = await service.pool.query<{ table: string; expression: string }>(
      `SELECT quote_ident(table_name) AS table, string_agg(
         CASE data_type WHEN 'bytea' THEN format('coalesce(encode(%I, ''escape''), '''')', column_name)
                        ELSE format('coalesce(%I::text, '''')', column_name) END, ' || chr(10) || ') AS expression
       FROM information_schema.columns WHERE table_schema = current_schema() GROUP BY table_name`,
    );
    assert.ok(columns.length > 20);
    const texts = await Promise.all(
      columns.map(async ({ table, expression }) => {
        const { rows } = await service.pool.query<{ row: string }>(`SELECT ${expression} AS row FROM ${table}`);
        return rows.map(({ row }) => row).join('\n');
      }),
    );
    return texts.join('\n');
  }

  it('of a single email, a batch, a repeated request and an email with files', async () => {
    await ours.sent(FIELDS);
    await ours.sent({ ...FIELDS, attachments: [{ filename: 'a.txt', content: 'aGk=' }] });
    const headers = { 'idempotency-key': 'once' };
    const json = ours.mail(FIELDS);
    for (let i = 0; i < 2; i++) {
      const { status } = await ours.call('POST', '/v1/emails', { json, headers });
      assert.equal(status, 202);
    }
    const emails = Array.from({ length: 3 }, () => ours.mail({ ...FIELDS, subject: 'canarysubject' }));
    assert.equal((await ours.call('POST', '/v1/emails/batch', { json: { emails } })).status, 202);

    const text = await dump();
    assert.deepEqual(foundIn(text, CANARIES), []);
    assert.deepEqual(foundIn(text, { subject: 'canarysubject' }), ['subject'], 'what is kept in the clear is found');
  });

  it('and are read again by the API with the key, in every process', async () => {
    const id = await ours.sent(FIELDS);
    assert.deepEqual((await ours.email(id))['headers'], FIELDS.headers);
    const other = makeEmailContents(SECRET_KEY);
    const stored = { ...FIELDS, subject: String((await ours.email(id))['subject']) };
    assert.deepEqual(await findContent(service.pool, other, ours.id, id), stored);
    const rotated = makeEmailContents(['another secret key of 32 characters', SECRET_KEY]);
    assert.deepEqual(await findContent(service.pool, rotated, ours.id, id), stored);
    await assert.rejects(
      findContent(service.pool, makeEmailContents('another secret key of 32 characters'), ours.id, id),
    );
  });

  it('and cannot be read in the row of another email or organization', async () => {
    const theirs = await service.organization();
    const [id, other, foreign] = [await ours.sent(FIELDS), await ours.sent(), await theirs.sent()];
    for (const [to, orgId] of [
      [other, ours.id],
      [foreign, theirs.id],
    ] as const) {
      await service.pool.query(
        'UPDATE email_bodies SET sealed = (SELECT sealed FROM email_bodies WHERE email_id = $1) WHERE email_id = $2',
        [id, to],
      );
      await assert.rejects(findContent(service.pool, service.deps.contents, orgId, to));
    }
  });

  it('while those from before encryption stay readable', async () => {
    const id = await acceptOne(service.pool, ours.id, {
      ...FIELDS,
      from_domain: ours.domain,
      from: `a@${ours.domain}`,
    });
    const { html, text } = (await findContent(service.pool, service.deps.contents, ours.id, id)) ?? {};
    assert.deepEqual([html, text], [FIELDS.html, FIELDS.text]);
    const email = await findEmail(service.pool, service.deps.contents, ours.id, id);
    assert.deepEqual(email?.headers, FIELDS.headers);
  });

  it('with one data key for each organization, also when its first emails arrive at once in two processes', async () => {
    const fresh = await service.organization();
    const [one, two] = [makeEmailContents(SECRET_KEY), makeEmailContents(SECRET_KEY)];
    const content = { html: null, text: 'x', headers: {} };
    const sealed = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const id = `em_${i}`;
        const { sealed_body } = await (i % 2 === 0 ? one : two).seal(service.pool, fresh.id, id, content);
        return { ...content, id, org_id: fresh.id, text: null, sealed_body, sealed_headers: null };
      }),
    );
    for (const stored of sealed) {
      assert.equal((await makeEmailContents(SECRET_KEY).open(service.pool, stored)).text, 'x');
    }
    const { rows } = await service.pool.query('SELECT version FROM data_keys WHERE org_id = $1', [fresh.id]);
    assert.deepEqual(rows, [{ version: 1 }]);
  });
});
