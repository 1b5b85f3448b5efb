import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PASSWORD, signedIn } from '../dashboard/visitor.ts';
import { useService } from '../http/service.ts';
import { foundIn } from './canaries.ts';

/** A copy of the whole database opens nothing: each secret is kept as a hash, or sealed with a key that is not in it. */
const service = await useService();
const ours = await service.organization();

async function made(path: string, json: object): Promise<Record<string, unknown>> {
  const answer = await ours.call('POST', path, { json });
  assert.ok(answer.status === 200 || answer.status === 201, answer.text);
  return answer.body as Record<string, unknown>;
}

/** Every row of every table, as text. */
async function dump(): Promise<string> {
  const { rows: tables } = await service.pool.query<{ name: string }>(
    `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = current_schema()`,
  );
  assert.ok(tables.length > 20, `${tables.length} tables`);
  const texts = await Promise.all(
    tables.map(async ({ name }) => {
      const { rows } = await service.pool.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
      return rows.map(({ row }) => row).join('\n');
    }),
  );
  return texts.join('\n');
}

it('keys, passwords, sessions, invitations, signing secrets and provider tokens', async () => {
  const key = String((await made('/v1/keys', { preset: 'read_only' }))['api_key']);
  const hook = await made('/v1/webhooks', { url: 'https://example.com/hook' });
  const rotated = await made(`/v1/webhooks/${String(hook['id'])}/rotate-secret`, {});
  const tokens = { twilio: 'canarytwiliotoken', meta: 'canarymetatoken' };
  await made('/v1/chatapp/numbers', {
    number: '+12025550142',
    provider: 'twilio',
    account_sid: `AC${'0'.repeat(32)}`,
    auth_token: tokens.twilio,
  });
  await made('/v1/chatapp/numbers', {
    number: '+12025550143',
    provider: 'meta',
    phone_number_id: '1099',
    access_token: tokens.meta,
  });
  const ada = await signedIn(service, ours.id);
  const invited = await ada.post('/dashboard/members', { email: 'grace@example.com', role: 'viewer' });
  const [, invitation = ''] = /\/dashboard\/invitations\/([\w-]{43})/.exec(invited.html) ?? [];
  await ours.sent({ subject: 'canarysubject' });

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
  const text = await dump();
  assert.deepEqual(foundIn(text, secrets), []);
  assert.ok(!text.includes('PRIVATE KEY'), 'a key that signs email');
  assert.deepEqual(foundIn(text, { subject: 'canarysubject' }), ['subject'], 'what is kept in the clear is found');
});
