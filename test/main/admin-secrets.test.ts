import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { newId } from '../../src/lib/ids.ts';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { webhookSeal } from '../../src/accounts/webhooks.ts';
import { dkimOwner, dkimSeal } from '../../src/sender-domains/deps.ts';
import { secondFactorSeal } from '../../src/accounts/second-factor.ts';
import { insertSecondFactor } from '../../src/store/accounts/second-factors.ts';
import { accountLinkSeal } from '../../src/domain/email/account-link.ts';
import { insertAccountLink } from '../../src/store/emails/account-links.ts';
import { insertNumber } from '../../src/store/chat/numbers.ts';
import { findMessage } from '../../src/store/messages/messages.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { findContent } from '../../src/store/emails/message-details.ts';
import { insertEndpoint, rotateSecret } from '../../src/store/webhooks/endpoints.ts';
import { acceptOne, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { printed } from './command-line.ts';

const FORMER = 'the former secret key of 32 characters and more';
const CURRENT = 'the current secret key of 32 characters and more';
const LOST = 'a secret key that is lost, 32 characters long';
const ENDPOINTS = 1_100;

const database = await useDatabase();

describe('secrets reseal', () => {
  let orgId: string;
  let domainId: string;
  const numberId = newId('num');
  before(async () => {
    orgId = await organization(database.pool);
    await addEndpoints(ENDPOINTS, FORMER);
    await makeEmailContents(FORMER).prepare(database.pool, orgId);
    const number = { id: numberId, number: '+12025550142', provider: 'meta', phone_number_id: '1' } as const;
    const token = chatSeal(FORMER).close(Buffer.from('a token'), numberId);
    await insertNumber(
      database.pool,
      orgId,
      { ...number, account_sid: null, templates: [], verified_by: 'operator' },
      token,
    );
    const { rows } = await database.pool.query<{ id: string }>('SELECT id FROM domains');
    domainId = rows[0]?.id ?? assert.fail('there is no domain');
    const key = dkimSeal(FORMER).close(Buffer.from('a private key'), dkimOwner({ org_id: orgId, id: domainId }));
    await database.pool.query(`UPDATE domains SET dkim_public = 'x', dkim_key = $1`, [key]);
    await database.pool.query(
      `INSERT INTO users (id, email, name, password) VALUES ('usr_1', 'a@example.com', '', 'x')`,
    );
    await insertSecondFactor(database.pool, 'usr_1', secondFactorSeal(FORMER).close(Buffer.from('a secret'), 'usr_1'));
    await insertAccountLink(database.pool, 'em_1', accountLinkSeal(FORMER).close(Buffer.from('a link'), 'em_1'));
  });

  async function addEndpoints(count: number, secretKey: string): Promise<string[]> {
    const ids = Array.from({ length: count }, () => newId('wh'));
    const seal = webhookSeal(secretKey);
    for (const id of ids) {
      const endpoint = { id, url: 'https://example.com/', description: null, events: [] };
      await insertEndpoint(database.pool, orgId, endpoint, seal.close(Buffer.from(`secret of ${id}`), id));
    }
    return ids;
  }

  async function reseal(old: string): Promise<unknown> {
    const env = { DATABASE_URL: database.url, SECRET_KEY: CURRENT, SECRET_KEY_OLD: old };
    return printed(['secrets', 'reseal'], env);
  }

  it('seals everything with the new key and has nothing to do the second time', async () => {
    const content = { html: '<p>canarybody</p>', text: null, headers: { 'X-A': 'canaryheader' } };
    const ids = [await acceptOne(database.pool, orgId, content), await acceptOne(database.pool, orgId, content)];
    const message = newId('sms');
    await database.pool.query(
      `INSERT INTO chat_messages (id, org_id, channel, number_id, "from", "to", country, type, content, status, created_at, last_event_at)
       VALUES ($1, $2, 'sms', 'snd_1', '+12025550142', '+14165550123', 'CA', 'text', '{"text":"Hi."}', 'sent', now(), now())`,
      [message, orgId],
    );
    const [rotated = ''] = await addEndpoints(1, FORMER);
    for (const secretKey of [FORMER, CURRENT]) {
      const secret = webhookSeal(secretKey).close(Buffer.from(`secret of ${rotated}`), rotated);
      await rotateSecret(database.pool, orgId, rotated, secret, 24);
    }
    const none = { resealed: 0, unreadable: 0 };
    const one = { resealed: 1, unreadable: 0 };
    assert.deepEqual(await reseal(FORMER), {
      data_keys: one,
      webhook_secrets: { resealed: ENDPOINTS, unreadable: 0 },
      old_webhook_secrets: one,
      older_webhook_secrets: one,
      chat_credentials: one,
      account_links: one,
      second_factors: one,
      dkim_keys: one,
      email_contents: { resealed: 2 },
      message_contents: { resealed: 1 },
    });

    const { rows } = await database.pool.query<{ id: string; secrets: Buffer[] }>(
      'SELECT id, array_remove(ARRAY[secret, old_secret, older_secret], NULL) AS secrets FROM webhook_endpoints',
    );
    assert.equal(rows.length, ENDPOINTS + 1);
    for (const { id, secrets } of rows) {
      for (const sealed of secrets) {
        assert.equal(webhookSeal(CURRENT).open(sealed, id).toString(), `secret of ${id}`);
      }
    }
    const { rows: others } = await database.pool.query<{ credentials: Buffer; dkim_key: Buffer }>(
      'SELECT credentials, dkim_key FROM chat_numbers CROSS JOIN domains',
    );
    const [other] = others;
    assert.ok(other);
    assert.equal(chatSeal(CURRENT).open(other.credentials, numberId).toString(), 'a token');
    const contents = makeEmailContents(CURRENT);
    for (const id of ids) {
      const { subject, ...found } = (await findContent(database.pool, contents, orgId, id)) ?? {};
      assert.deepEqual([subject, found], ['Hello', content]);
    }
    const opened = await findMessage(database.pool, contents, orgId, 'sms', message);
    assert.equal(opened?.text, 'Hi.');
    const { rows: unsealed } = await database.pool.query(`SELECT FROM chat_messages WHERE content::text <> 'null'`);
    assert.equal(unsealed.length, 0);
    const { rows: clear } = await database.pool.query(
      `SELECT FROM emails JOIN email_bodies ON email_id = id WHERE (headers::text || coalesce(html, '')) LIKE '%canary%'`,
    );
    assert.equal(clear.length, 0, 'nothing of it is in the clear');
    const owner = dkimOwner({ org_id: orgId, id: domainId });
    assert.equal(dkimSeal(CURRENT).open(other.dkim_key, owner).toString(), 'a private key');

    const { rows: links } = await database.pool.query<{ sealed: Buffer }>('SELECT sealed FROM account_links');
    assert.deepEqual(
      links.map(({ sealed }) => accountLinkSeal(CURRENT).open(sealed, 'em_1').toString()),
      ['a link'],
    );

    assert.deepEqual(await reseal(FORMER), {
      data_keys: none,
      webhook_secrets: none,
      old_webhook_secrets: none,
      older_webhook_secrets: none,
      chat_credentials: none,
      account_links: none,
      second_factors: none,
      dkim_keys: none,
      email_contents: { resealed: 0 },
      message_contents: { resealed: 0 },
    });
  });

  it('counts and keeps a secret that no key opens, and continues after it', async () => {
    const [lost = ''] = await addEndpoints(1, LOST);
    await addEndpoints(1, FORMER);
    const result = (await reseal(FORMER)) as { webhook_secrets: unknown };
    assert.deepEqual(result.webhook_secrets, { resealed: 1, unreadable: 1 });
    const { rows } = await database.pool.query<{ secret: Buffer }>(
      'SELECT secret FROM webhook_endpoints WHERE id = $1',
      [lost],
    );
    assert.equal(
      webhookSeal(LOST)
        .open(rows[0]?.secret ?? Buffer.alloc(0), lost)
        .toString(),
      `secret of ${lost}`,
    );
  });
});
