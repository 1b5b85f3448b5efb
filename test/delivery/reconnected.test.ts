import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatSeal, connectNumberForOperator, removeNumber } from '../../src/accounts/chat-numbers.ts';
import { addSender, removeSender } from '../../src/accounts/sms-senders.ts';
import type { ChatProviderName } from '../../src/domain/chat/chat.ts';
import { noLimits } from '../../src/intake/emails.ts';
import { sendSms } from '../../src/intake/sms.ts';
import type { SendingNumber } from '../../src/store/messages/delivery.ts';
import { acceptText, chatRow } from '../store/chats.ts';
import { organization } from '../store/mail.ts';
import { organizationFixture } from '../support/organization.ts';
import { chatHarness, ScriptedChat } from './chat-harness.ts';

const { pool, orgId } = await organizationFixture(4);
const seal = chatSeal('a secret key for tests, and long enough');
const IN_AN_HOUR = () => new Date(Date.now() + 3_600_000).toISOString();

let count = 0;
const fresh = () => `+1202555${String(7_000 + ++count)}`;

async function connect(number: string, token: string, org = orgId, provider: ChatProviderName = 'twilio') {
  const account =
    provider === 'meta'
      ? { phone_number_id: number.slice(1), account_sid: null }
      : { phone_number_id: null, account_sid: `AC${'0'.repeat(32)}` };
  const request = { number, provider, ...account, token, templates: [] };
  return (await connectNumberForOperator(pool, seal, org, request)).id;
}

/** Makes a scheduled message due. */
async function makeDue(id: string): Promise<void> {
  await pool.query('UPDATE chat_messages SET scheduled_at = now() WHERE id = $1', [id]);
}

/** A harness that collects the tokens with which messages are sent. */
function collecting() {
  const tokens: (string | null)[] = [];
  const provider = new ScriptedChat();
  const providerOf = ({ credentials, id }: SendingNumber) => {
    tokens.push(credentials && seal.open(credentials, id).toString());
    return provider;
  };
  return { tokens, provider, ...chatHarness(pool, provider, { providerOf }) };
}

describe('messages of a number that is disconnected and connected again', () => {
  test('are sent with its new token', async () => {
    const number = fresh();
    const { tokens, provider, deliver } = collecting();
    const numberId = await connect(number, 'old');
    const scheduled = await acceptText(pool, orgId, number, {}, IN_AN_HOUR());
    const refused = await acceptText(pool, orgId, number);
    provider.acts.push({ kind: 'account', detail: 'The token is not valid.' });
    assert.equal((await deliver(refused)).state, 'again');
    await removeNumber(pool, orgId, numberId);
    await connect(number, 'new');
    tokens.length = 0;
    await makeDue(scheduled);
    for (const id of [scheduled, refused]) assert.equal((await deliver(id)).state, 'ended');
    for (const id of [scheduled, refused]) assert.equal((await chatRow(pool, id)).status, 'sent');
    assert.deepEqual(tokens, ['new', 'new']);
  });

  test('fail if another organization connects it', async () => {
    const number = fresh();
    const other = await organization(pool, 'other.example');
    const { deliver } = collecting();
    const numberId = await connect(number, 'old');
    const id = await acceptText(pool, orgId, number);
    await removeNumber(pool, orgId, numberId);
    await connect(number, 'theirs', other);
    assert.equal((await deliver(id)).state, 'ended');
    const { status, error } = await chatRow(pool, id);
    assert.deepEqual([status, error], ['failed', 'The number that it should come from is no longer connected.']);
  });

  test('keep their connection if an attempt is ambiguous or another provider has accepted them', async () => {
    const number = fresh();
    const { deliver, die } = collecting();
    const numberId = await connect(number, 'old');
    const [ambiguous, sent] = [await acceptText(pool, orgId, number), await acceptText(pool, orgId, number)];
    await deliver(sent);
    await die(ambiguous, true);
    await removeNumber(pool, orgId, numberId);
    await connect(number, 'new', orgId, 'meta');
    const { rows } = await pool.query('SELECT DISTINCT number_id FROM chat_messages WHERE id = ANY ($1)', [
      [ambiguous, sent],
    ]);
    assert.deepEqual(rows, [{ number_id: numberId }]);
  });
});

test('SMS of a sender that is disconnected and connected for more countries are sent', async () => {
  const from = fresh();
  const { deliverSms } = collecting();
  await addSender(pool, orgId, from, ['DE']);
  const request = { from, to: '+4915123456789', text: 'Hi.', tags: [], scheduled_at: IN_AN_HOUR() };
  const { id } = await sendSms({ pool, wakeRelay: () => undefined, limits: noLimits() }, { orgId }, request);
  await removeSender(pool, orgId, from);
  await addSender(pool, orgId, from, ['DE', 'FR']);
  await makeDue(id);
  await deliverSms(id);
  assert.equal((await chatRow(pool, id)).status, 'sent');
});
