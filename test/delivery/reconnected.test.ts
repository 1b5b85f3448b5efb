import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatSeal, connectNumberForOperator, removeNumber } from '../../src/accounts/chat-numbers.ts';
import { addSender, removeSender } from '../../src/accounts/sms-senders.ts';
import type { ChatProviderName } from '../../src/domain/chat/chat.ts';
import type { InboundCallback } from '../../src/domain/chat/inbound.ts';
import { noLimits } from '../../src/intake/emails.ts';
import { sendSms } from '../../src/intake/sms.ts';
import { projectInbound } from '../../src/projection/chat-inbound.ts';
import { UNLIMITED_RECEIVED } from '../../src/projection/received-limit.ts';
import { findAnsweredMessage, findInboundMedia } from '../../src/store/chat/inbound.ts';
import type { SendingNumber } from '../../src/store/messages/delivery.ts';
import { acceptText, chatRow } from '../store/chats.ts';
import { inMs, organization } from '../store/mail.ts';
import { contents } from '../support/contents.ts';
import { organizationFixture } from '../support/organization.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { chatHarness, ScriptedChat } from './chat-harness.ts';

const { pool, orgId } = await organizationFixture(4);
const seal = chatSeal(SECRET_KEY);

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

const USER = '+14165550123';

/** A message with a file, as Twilio reports it. */
function receivedFile(number: string): InboundCallback {
  const absent = { sentAt: null, text: null, button: null, location: null, reaction: null, repliesTo: null };
  const user = { number: USER, userId: null, username: null, name: null };
  const media = { reference: '/Media/ME1', contentType: 'image/png', filename: null };
  const message = { ...absent, kind: 'message', type: 'image', providerMessageId: `SM${number}`, user, media } as const;
  return { provider: 'twilio', number, events: [message] };
}

/** Receives a file by a number; each call reports the same message. @returns a function that finds the file */
async function receiveFile(number: string) {
  const ids: string[] = [];
  const receive = () =>
    projectInbound(pool, receivedFile(number), (id) => (ids.push(id), 'https://files.example'), UNLIMITED_RECEIVED);
  await receive();
  const find = () => findInboundMedia(pool, ids[0] as string, Date.now() / 1_000 + 60);
  return { ids, receive, find };
}

describe('files that a number received before it is disconnected and connected again', () => {
  const theirs = organization(pool, 'theirs.example');

  /** Receives a file by a number that has sent nothing, and connects the number again. */
  async function reconnectedAt(provider: ChatProviderName, org = orgId) {
    const number = fresh();
    const formerId = await connect(number, 'old');
    const received = await receiveFile(number);
    await removeNumber(pool, orgId, formerId);
    return { number, numberId: await connect(number, 'new', org, provider), ...received };
  }

  test('can be downloaded with its new token, and are recorded once', async () => {
    const { numberId, receive, ids, find } = await reconnectedAt('twilio');
    assert.equal((await find())?.number.id, numberId);
    await receive();
    assert.equal(ids.length, 1);
  });

  test('are found when their user replies to them', async () => {
    const { number, numberId, ids } = await reconnectedAt('twilio');
    const receiver = { id: numberId, org_id: orgId, number, provider: 'twilio' } as const;
    const user = { wa_number: USER, user_id: null, former_user_id: null, username: null, last_inbound_at: null };
    assert.equal(await findAnsweredMessage(pool, receiver, user, `SM${number}`), ids[0]);
    assert.equal(
      await findAnsweredMessage(pool, { ...receiver, org_id: await theirs }, user, `SM${number}`),
      undefined,
    );
  });

  test('cannot be downloaded from another provider or by another organization', async () => {
    assert.equal(await (await reconnectedAt('meta')).find(), undefined);
    assert.equal(await (await reconnectedAt('twilio', await theirs)).find(), undefined);
  });

  test('are not written while it is connected, which may take long', async () => {
    const number = fresh();
    const formerId = await connect(number, 'old');
    await collecting().deliver(await acceptText(pool, orgId, number));
    await receiveFile(number);
    await removeNumber(pool, orgId, formerId);
    const version = async () => {
      const { rows } = await pool.query<{ xmin: string }>(
        'SELECT xmin FROM chat_inbound WHERE provider_message_id = $1',
        [`SM${number}`],
      );
      return rows;
    };
    const before = await version();
    await connect(number, 'new');
    assert.deepEqual(await version(), before);
  });
});

test('a file that an earlier version recorded can be downloaded', async () => {
  const number = fresh();
  const numberId = await connect(number, 'own');
  const { ids, find } = await receiveFile(number);
  await pool.query('UPDATE chat_inbound SET number = NULL, provider = NULL WHERE id = $1', [ids[0]]);
  assert.equal((await find())?.number.id, numberId);
});

describe('messages of a number that is disconnected and connected again', () => {
  test('are sent with its new token', async () => {
    const number = fresh();
    const { tokens, provider, deliver } = collecting();
    const numberId = await connect(number, 'old');
    const scheduled = await acceptText(pool, orgId, number, {}, inMs(3_600_000));
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
  const request = { from, to: '+4915123456789', text: 'Hi.', tags: [], scheduled_at: inMs(3_600_000) };
  const { id } = await sendSms({ pool, wakeRelay: () => undefined, limits: noLimits(), contents }, { orgId }, request);
  await removeSender(pool, orgId, from);
  await addSender(pool, orgId, from, ['DE', 'FR']);
  await makeDue(id);
  await deliverSms(id);
  assert.equal((await chatRow(pool, id)).status, 'sent');
});
