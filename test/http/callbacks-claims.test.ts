import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { makeMetadataSigner } from '../../src/domain/email/metadata-signature.ts';
import { project } from '../../src/projection/emails.ts';
import { BOUNCE, COMPLAINT, DELIVERY, SUBSCRIPTION_CHANGE } from '../providers/postmark-records.ts';
import { CALLBACK, type Organization, SECRET_KEY, type Service, startService } from './service.ts';

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

const authorization = `Basic ${Buffer.from(`${CALLBACK.user}:${CALLBACK.password}`).toString('base64')}`;
const { sign } = makeMetadataSigner(SECRET_KEY);
const PERSON = 'person@example.net';
const sent = (fields: Record<string, unknown> = {}) => ours.sent({ to: PERSON, ...fields });
let count = 0;

/** A record about an email of ours, signed as its metadata is. */
const about = <T extends object>(record: T, email: string, recipient: string) => ({
  ...record,
  MessageID: `m${++count}`,
  Metadata: { email, call: 'call_1', sig: sign(email) },
  ...('Email' in record ? { Email: recipient, ID: count } : { Recipient: recipient }),
});

async function told(id: string): Promise<unknown[]> {
  const email = await ours.email(id);
  return [email['status'], ...(email['events'] as { type: string }[]).map(({ type }) => type)];
}

/** What a record that is answered with 200 leaves among the kept ones. */
async function keptOf(json: unknown): Promise<string[]> {
  await service.pool.query('DELETE FROM provider_callbacks');
  const answer = await service.call('POST', '/callbacks/postmark', { json, headers: { authorization } });
  assert.deepEqual([answer.status, answer.body], [200, {}]);
  const { rows } = await service.pool.query<{ body: string }>('SELECT body FROM provider_callbacks');
  return rows.map((row) => row.body);
}

async function suppressed(address: string): Promise<string[]> {
  const { rows } = await service.pool.query<{ origin: string }>(
    'SELECT origin FROM suppressions WHERE org_id = $1 AND email = $2 ORDER BY origin',
    [ours.id, address],
  );
  return rows.map(({ origin }) => origin);
}

describe('a callback about an email that its message does not belong to', () => {
  const MESSAGE = '11111111-2222-3333-4444-555555555555';
  const BOUNCED = { ...BOUNCE, Details: 'smtp;550 5.1.1 user unknown' };
  /** An email that Postmark took as MESSAGE, and what has become of it since. */
  async function taken(fields: Record<string, unknown> = {}): Promise<string> {
    const id = await sent(fields);
    await project(service.pool, 'sent', [{ id, provider: 'postmark', provider_message_id: MESSAGE }]);
    return id;
  }
  const unsigned = <T extends object>(record: T, email: string, recipient = PERSON, fields: object = {}) => ({
    ...about(record, email, recipient),
    Metadata: { email, call: 'call_1' },
    ...fields,
  });
  const CHANGE = { ...SUBSCRIPTION_CHANGE, Origin: 'Customer' };

  for (const [name, record] of Object.entries({ DELIVERY, BOUNCED, COMPLAINT, SUBSCRIPTION_CHANGE, CHANGE })) {
    it(`${name} of another message, without our signature, is kept and changes nothing`, async () => {
      const to = `victim${++count}@example.net`;
      const id = await taken({ to });
      for (const forged of [
        unsigned(record, id, to),
        unsigned(record, id, to, { Metadata: { email: id, call: 'call_1', sig: sign('em_other') } }),
        unsigned(record, id, to, { Metadata: { email: id, call: 'call_1', sig: '' } }),
      ]) {
        assert.deepEqual(await keptOf(forged), [JSON.stringify(forged)]);
      }
      assert.deepEqual(await told(id), ['sent', 'email.queued', 'email.sent']);
      assert.deepEqual(await suppressed(to), []);
    });

    it(`${name} about somebody who is no recipient is kept and changes nothing`, async () => {
      const id = await taken();
      const stranger = `stranger${++count}@example.net`;
      for (const forged of [about(record, id, stranger), unsigned(record, id, stranger, { MessageID: MESSAGE })]) {
        assert.deepEqual(await keptOf(forged), [JSON.stringify(forged)]);
      }
      assert.deepEqual(await told(id), ['sent', 'email.queued', 'email.sent']);
      assert.deepEqual(await suppressed(stranger), []);
    });
  }

  it('counts without a signature when Postmark gave us the message id, as for email of earlier versions', async () => {
    const id = await taken();
    assert.deepEqual(await keptOf(unsigned(DELIVERY, id, PERSON, { MessageID: MESSAGE })), []);
    assert.equal((await told(id))[0], 'delivered');
  });

  it('counts for a copy of a marketing email by the message id of the copy', async () => {
    const id = await sent({ to: ['m1@example.net', 'm2@example.net'], marketing: true });
    await service.pool.query(
      `INSERT INTO email_recipients (email_id, recipient, status, provider_message_id) VALUES ($1, 'm2@example.net', 'sent', $2)`,
      [id, MESSAGE],
    );
    assert.deepEqual(await keptOf(unsigned(DELIVERY, id, 'm2@example.net', { MessageID: MESSAGE })), []);
    assert.equal((await told(id))[0], 'delivered');
  });

  it('counts for recipients as customers write them', async () => {
    for (const [to, recipient] of [
      ['"<x@evil.example>" <Named@Example.net>', 'named@example.net'],
      [' < spaced@example.net > ', 'spaced@example.net'],
      ['q@bücher.example', 'q@xn--bcher-kva.example'],
      ['Q <q@bücher.example>', 'q@bücher.example'],
    ] as const) {
      for (const field of ['to', 'cc', 'bcc']) {
        const id = await taken({ [field]: [to] });
        assert.deepEqual(await keptOf(about(DELIVERY, id, recipient)), [], `${field} ${to}`);
        assert.equal((await told(id))[0], 'delivered', `${field} ${to}`);
      }
    }
  });
});
