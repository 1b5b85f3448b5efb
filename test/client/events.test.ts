import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BounceReason, WebhookEvent } from '../../client/index.ts';
import { makeMetadataSigner } from '../../src/domain/email/metadata-signature.ts';
import { harness, ScriptedProvider } from '../delivery/harness.ts';
import { CALLBACK, type Organization, SECRET_KEY, type Service, startService } from '../http/service.ts';
import { BOUNCE, CLICK, COMPLAINT, DELIVERY, OPEN, SUBSCRIPTION_CHANGE } from '../providers/postmark-records.ts';
import { assertPresent } from './always-present.ts';

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
  await ours.call('POST', '/v1/webhooks', { json: { url: 'https://example.com/hook' } });
});
after(() => service.close());

/** The events of one email that endpoints receive, by type. */
async function eventsOf(id: string): Promise<Map<string, object>> {
  const { rows } = await service.pool.query<{ type: string; data: object }>(
    'SELECT type, data FROM webhook_events WHERE message_id = $1',
    [id],
  );
  return new Map(rows.map(({ type, data }) => [type, data]));
}

const NO_WORDS = { Details: '', Description: '' };
const UNSUBSCRIBED = {
  ...SUBSCRIPTION_CHANGE,
  SuppressSending: true,
  SuppressionReason: 'ManualSuppression',
  Origin: 'Recipient',
};

for (const [type, record] of [
  ['email.delivery_delayed', { ...BOUNCE, ...NO_WORDS, Type: 'Transient', Inactive: false }],
  ['email.delivered', DELIVERY],
  ['email.opened', OPEN],
  ['email.clicked', CLICK],
  ['email.bounced', { ...BOUNCE, Details: 'smtp;550 5.1.1 There is no such user' }],
  ['email.bounced', { ...BOUNCE, ...NO_WORDS }],
  ['email.complained', COMPLAINT],
  ['email.unsubscribed', UNSUBSCRIBED],
] as const) {
  const isSilent = 'Details' in record && record.Details === '';
  test(`${type} has the fields that the client promises${isSilent ? ', also when the provider states no reason' : ''}`, async () => {
    const recipient = 'john@example.net';
    const id = await ours.sent({ to: recipient });
    const { user, password } = CALLBACK;
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
    const Metadata = { email: id, call: 'call_1', sig: makeMetadataSigner(SECRET_KEY).sign(id) };
    const json = { ...record, ...('Recipient' in record ? { Recipient: recipient } : { Email: recipient }), Metadata };
    const answer = await service.call('POST', '/callbacks/postmark', { json, headers: { authorization } });
    assert.equal(answer.status, 200);
    const data = (await eventsOf(id)).get(type);
    assert.ok(data, `there is an event ${type}`);
    assertPresent({ type, data });
  });
}

for (const [type, detail] of [
  ['email.failed', 'The provider does not answer.'],
  ['email.rejected', ''],
] as const) {
  test(`${type} has the fields that the client promises`, async () => {
    const provider = new ScriptedProvider();
    if (type === 'email.rejected') provider.acts.push({ kind: 'rejected', detail });
    else provider.refuses = () => detail;
    const there = harness(service.pool, ours.id, [provider]);
    const member = await there.accept({ from_domain: ours.domain, from: `hello@${ours.domain}` });
    await there.deliverOne(member);
    const data = (await eventsOf(member.id)).get(type);
    assert.ok(data, `there is an event ${type}`);
    assertPresent({ type, data });
  });
}

test('comparing the type of an event narrows its data', () => {
  const event = {
    id: 'evt_1',
    type: 'email.bounced',
    created_at: '2026-03-01T09:30:02.431Z',
    data: {
      emailId: 'em_1',
      from: 'a@example.com',
      subject: 'S',
      status: 'bounced',
      recipient: 'b@example.net',
      error: 'no',
      bounceReason: 'unknown',
    },
  } as WebhookEvent;
  assert.ok(event.type === 'email.bounced');
  const { recipient, error, bounceReason } = event.data;
  const strings: readonly [string, string, BounceReason] = [recipient, error, bounceReason];
  assert.deepEqual(strings, ['b@example.net', 'no', 'unknown']);
});

/** These lines must not compile. */
export function misuse(event: WebhookEvent): void {
  // @ts-expect-error not every event is about an email
  console.log(event.data.emailId);
  if (event.type === 'email.sent') {
    // @ts-expect-error the recipient is optional in an event about the whole email
    const recipient: string = event.data.recipient;
    console.log(recipient);
  }
}
