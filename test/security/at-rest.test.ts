import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { findEmail } from '../../src/store/emails/emails.ts';
import { findContent } from '../../src/store/emails/message-details.ts';
import { PASSWORD, signedIn } from '../dashboard/visitor.ts';
import { SECRET_KEY, useService } from '../http/service.ts';
import { acceptOne } from '../store/mail.ts';
import { foundIn } from './canaries.ts';

/** A copy of the whole database reveals no secret: each is stored as a hash, or encrypted with a key outside of it. */
const service = await useService();
const ours = await service.organization();
const { contents } = service.deps;

/** Every row of every table, as text; bytes as text too. */
async function dump(): Promise<string> {
  const { rows: tables } = await service.pool.query<{ table: string; expression: string }>(
    `SELECT quote_ident(table_name) AS table, string_agg(
       CASE data_type WHEN 'bytea' THEN format('coalesce(encode(%I, ''escape''), '''')', column_name)
                      ELSE format('coalesce(%I::text, '''')', column_name) END, ' || chr(10) || ') AS expression
     FROM information_schema.columns WHERE table_schema = current_schema() GROUP BY table_name`,
  );
  assert.ok(tables.length > 20, `${tables.length} tables`);
  const texts = await Promise.all(
    tables.map(async ({ table, expression }) => {
      const { rows } = await service.pool.query<{ row: string }>(`SELECT ${expression} AS row FROM ${table}`);
      return rows.map(({ row }) => row).join('\n');
    }),
  );
  return texts.join('\n');
}

/** The database contains none of the secrets, in any encoding. A subject, which is stored as plain text, is found. */
async function assertNotStored(secrets: Readonly<Record<string, string>>): Promise<void> {
  await ours.sent({ subject: 'canarysubject' });
  const text = await dump();
  assert.deepEqual(foundIn(text, secrets), []);
  assert.deepEqual(foundIn(text, { subject: 'canarysubject' }), ['subject']);
}

async function post(path: string, json: object): Promise<Record<string, unknown>> {
  const answer = await ours.call('POST', path, { json });
  assert.ok(answer.status < 300, answer.text);
  return answer.body as Record<string, unknown>;
}

it('keys, passwords, sessions, invitations, signing secrets and provider tokens', async () => {
  const key = String((await post('/v1/keys', { preset: 'read_only' }))['api_key']);
  const hook = await post('/v1/webhooks', { url: 'https://example.com/hook' });
  const rotated = await post(`/v1/webhooks/${String(hook['id'])}/rotate-secret`, {});
  const tokens = { twilio: 'canarytwiliotoken', meta: 'canarymetatoken' };
  const twilio = { number: '+12025550142', provider: 'twilio', account_sid: `AC${'0'.repeat(32)}` };
  await post('/v1/chatapp/numbers', { ...twilio, auth_token: tokens.twilio });
  const meta = { number: '+12025550143', provider: 'meta', phone_number_id: '1099' };
  await post('/v1/chatapp/numbers', { ...meta, access_token: tokens.meta });
  const ada = await signedIn(service, ours.id);
  const invited = await ada.post('/dashboard/members', { email: 'grace@example.com', role: 'viewer' });
  const [, invitation = ''] = /\/dashboard\/invitations\/([\w-]{43})/.exec(invited.html) ?? [];

  const secret = (text: unknown) => String(text).replace(/^whsec_/, '');
  const secrets = {
    'the first key': ours.key.split('_').at(-1) ?? '',
    'another key': key.split('_').at(-1) ?? '',
    'the secret of an endpoint': secret(hook['secret']),
    'its next secret': secret(rotated['secret']),
    'the same as bytes': Buffer.from(secret(rotated['secret']), 'base64').toString('latin1'),
    'a token of Twilio': tokens.twilio,
    'a token of Meta': tokens.meta,
    'a password': PASSWORD,
    'a session': ada.cookie().split('=').slice(1).join('='),
    'an invitation': invitation,
  };
  for (const [name, text] of Object.entries(secrets)) assert.ok(text.length > 10, `${name} is ${text}`);
  await assertNotStored(secrets);
});

describe('bodies and custom headers are encrypted at rest', () => {
  const CANARIES = { html: 'canaryhtmlbody', text: 'canarytextbody', header: 'canaryheadervalue' };
  const FIELDS = { html: `<p>${CANARIES.html}</p>`, text: CANARIES.text, headers: { 'X-Canary': CANARIES.header } };
  const OTHER_KEY = 'another secret key of 32 characters';

  it('of a single email, a batch, a repeated request and an email with files', async () => {
    await ours.sent(FIELDS);
    await ours.sent({ ...FIELDS, attachments: [{ filename: 'a.txt', content: 'aGk=' }] });
    const repeated = { json: ours.mail(FIELDS), headers: { 'idempotency-key': 'first' } };
    for (let i = 0; i < 2; i++) assert.equal((await ours.call('POST', '/v1/emails', repeated)).status, 202);
    await post('/v1/emails/batch', { emails: Array.from({ length: 3 }, () => ours.mail(FIELDS)) });
    await assertNotStored(CANARIES);
  });

  it('and are read with the current or a previous secret key, and with no other', async () => {
    const id = await ours.sent(FIELDS);
    const { headers, subject } = await ours.email(id);
    assert.deepEqual(headers, FIELDS.headers);
    const find = (keys: Parameters<typeof makeEmailContents>[0]) =>
      findContent(service.pool, makeEmailContents(keys), ours.id, id);
    assert.deepEqual(await find(SECRET_KEY), { ...FIELDS, subject });
    assert.deepEqual(await find([OTHER_KEY, SECRET_KEY]), { ...FIELDS, subject });
    await assert.rejects(find(OTHER_KEY));
  });

  it('and cannot be read in the row of another email or organization', async () => {
    const theirs = await service.organization();
    const id = await ours.sent(FIELDS);
    for (const owner of [ours, theirs]) {
      const other = await owner.sent();
      await service.pool.query(
        'UPDATE email_bodies SET sealed = (SELECT sealed FROM email_bodies WHERE email_id = $1) WHERE email_id = $2',
        [id, other],
      );
      await assert.rejects(findContent(service.pool, contents, owner.id, other));
    }
  });

  it('while those from before encryption stay readable', async () => {
    const sender = { from_domain: ours.domain, from: `a@${ours.domain}` };
    const id = await acceptOne(service.pool, ours.id, { ...FIELDS, ...sender });
    const { html, text } = (await findContent(service.pool, contents, ours.id, id)) ?? {};
    assert.deepEqual([html, text], [FIELDS.html, FIELDS.text]);
    assert.deepEqual((await findEmail(service.pool, contents, ours.id, id))?.headers, FIELDS.headers);
  });

  it('with one data key for each organization, also when two processes create it concurrently', async () => {
    const fresh = await service.organization();
    const processes = [makeEmailContents(SECRET_KEY), makeEmailContents(SECRET_KEY)];
    const content = { html: null, text: 'x', headers: {} };
    const stored = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const id = `em_${i}`;
        const { sealed_body = null } = (await processes[i % 2]?.seal(service.pool, fresh.id, id, content)) ?? {};
        return { ...content, id, org_id: fresh.id, text: null, sealed_body, sealed_headers: null };
      }),
    );
    for (const each of stored) {
      assert.equal((await makeEmailContents(SECRET_KEY).open(service.pool, each)).text, 'x');
    }
    const { rows } = await service.pool.query('SELECT version FROM data_keys WHERE org_id = $1', [fresh.id]);
    assert.deepEqual(rows, [{ version: 1 }]);
  });
});
