import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ChatUser, InboundCallback, InboundEvent, InboundMessage } from '../../src/domain/chat/inbound.ts';
import { newId } from '../../src/lib/ids.ts';
import { projectInbound } from '../../src/projection/chat-inbound.ts';
import { UNLIMITED_RECEIVED } from '../../src/projection/received-limit.ts';
import { projectMessageReports } from '../../src/projection/messages.ts';
import { insertEndpoint } from '../../src/store/webhooks/endpoints.ts';
import { acceptText, connect, TO } from '../store/chats.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase(8);
const orgId = await organization(pool);
const endpoint = { url: 'https://hooks.example/chat', description: null, events: ['chatapp.received'] };
await insertEndpoint(pool, orgId, { id: newId('wh'), ...endpoint }, Buffer.from('sealed'));

const AT = Date.parse('2026-03-01T00:00:00Z');
const ADA: ChatUser = { number: '+14165550123', userId: 'CA.1', username: 'ada', name: 'Ada' };
const LINK = (id: string, expires: number) => `https://files.example/${id}?${expires}`;

let count = 0;
function message(user: Partial<ChatUser>, fields: Partial<InboundMessage> = {}): InboundMessage {
  return {
    kind: 'message',
    providerMessageId: `wamid.${++count}`,
    user: { number: null, userId: null, username: null, name: null, ...user },
    type: 'text',
    sentAt: AT + count * 1_000,
    text: 'Hi',
    media: null,
    button: null,
    location: null,
    reaction: null,
    repliesTo: null,
    ...fields,
  };
}

interface Line {
  readonly id: string;
  readonly number: string;
  readonly receive: (...events: InboundEvent[]) => Promise<boolean>;
}

async function line(owner = orgId): Promise<Line> {
  const { id, number } = await connect(pool, owner);
  const callback = (events: InboundEvent[]): InboundCallback => ({ provider: 'twilio', number, events });
  return { id, number, receive: (...events) => projectInbound(pool, callback(events), LINK, UNLIMITED_RECEIVED) };
}

interface Row {
  wa_number: string | null;
  user_id: string | null;
  former_user_id: string | null;
  username: string | null;
  last_inbound_at: string | null;
}

async function contacts({ number }: Line): Promise<Row[]> {
  const { rows } = await pool.query<Row>(
    `SELECT wa_number, user_id, former_user_id, username, last_inbound_at FROM chat_contacts
     WHERE number = $1 ORDER BY coalesce(user_id, wa_number)`,
    [number],
  );
  return rows;
}

async function events({ number }: Line): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query<{ data: Record<string, unknown> }>(
    `SELECT data FROM webhook_events WHERE type = 'chatapp.received' AND data->>'to' = $1 ORDER BY id`,
    [number],
  );
  return rows.map(({ data }) => data);
}

describe('a message of a user', () => {
  test('makes a contact, opens its window when it was sent and queues chatapp.received', async () => {
    const ours = await line();
    const sent = message(ADA);
    assert.equal(await ours.receive(sent), true);
    const sentAt = new Date(sent.sentAt as number).toISOString();
    const row = {
      wa_number: ADA.number,
      user_id: 'CA.1',
      former_user_id: null,
      username: 'ada',
      last_inbound_at: sentAt,
    };
    assert.deepEqual(await contacts(ours), [row]);
    const [event, ...others] = await events(ours);
    const { messageId, ...rest } = event ?? {};
    assert.match(String(messageId), /^in_/);
    assert.deepEqual(rest, {
      ...{ from: ADA.number, to: ours.number, userId: 'CA.1', username: 'ada', name: 'Ada' },
      ...{ type: 'text', sentAt, text: 'Hi' },
    });
    assert.deepEqual(others, []);
  });

  test('without a time, or with one in the future, was sent now by the clock of the database', async () => {
    const ours = await line();
    for (const sentAt of [null, Date.now() + 86_400_000]) {
      await ours.receive(message({ userId: `CA.${++count}` }, { sentAt }));
    }
    const { rows } = await pool.query<{ age: number }>(
      'SELECT extract(epoch FROM now() - last_inbound_at)::float8 AS age FROM chat_contacts WHERE number = $1',
      [ours.number],
    );
    assert.equal(rows.length, 2);
    for (const { age } of rows) assert.ok(age >= 0 && age < 3_600, `${age} s`);
  });

  test('from a user without a number names its id', async () => {
    const ours = await line();
    await ours.receive(message({ userId: 'AT.77', username: 'ada' }));
    const [event] = await events(ours);
    assert.deepEqual([event?.['from'], event?.['userId']], ['AT.77', 'AT.77']);
  });

  test('contains a link to its file, and our ids of messages that it refers to', async () => {
    const ours = await line();
    const id = await acceptText(pool, orgId, ours.number);
    await projectMessageReports(pool, 'twilio', [
      { change: 'sent', messageId: id, providerMessageId: 'wamid.ours', dedupeKey: 'wamid.ours sent' },
    ]);
    const user = { number: TO, userId: 'DE.5' };
    const first = message(user, {
      type: 'image',
      media: { reference: '99', contentType: 'image/png', filename: null },
      repliesTo: 'wamid.ours',
    });
    const reaction = { emoji: null, providerMessageId: first.providerMessageId };
    await ours.receive(first, message(user, { type: 'reaction', text: null, reaction }));
    await ours.receive(message(user, { repliesTo: 'wamid.unknown' }));
    const [image, reacted, unknown] = await events(ours);
    const inboundId = String(image?.['messageId']);
    const { url, ...media } = image?.['media'] as { url: string };
    assert.match(url, new RegExp(`^https://files.example/${inboundId}\\?\\d{10}$`));
    assert.deepEqual(media, { contentType: 'image/png' });
    assert.deepEqual(image?.['context'], { messageId: id, providerMessageId: 'wamid.ours' });
    assert.deepEqual(reacted?.['reaction'], { messageId: inboundId, providerMessageId: first.providerMessageId });
    assert.deepEqual(unknown?.['context'], { providerMessageId: 'wamid.unknown' });
  });

  test('contains our id of the message that it answers if the WhatsApp id differs from the number', async () => {
    const ours = await line();
    const id = await acceptText(pool, orgId, ours.number);
    await pool.query(
      `UPDATE chat_messages SET "to" = '+5561987654321', provider_message_id = 'wamid.brazil' WHERE id = $1`,
      [id],
    );
    await ours.receive(message({ number: '+556187654321' }, { repliesTo: 'wamid.brazil' }));
    const [answer] = await events(ours);
    assert.deepEqual(answer?.['context'], { messageId: id, providerMessageId: 'wamid.brazil' });
  });

  test('concurrently repeated 30 times is recorded once', async () => {
    const ours = await line();
    const sent = message(ADA);
    await Promise.all(Array.from({ length: 30 }, () => ours.receive(sent)));
    assert.deepEqual([(await contacts(ours)).length, (await events(ours)).length], [1, 1]);
  });

  test('to a number that is not connected, or whose claim is not confirmed, is not recorded', async () => {
    const ours = await line();
    await pool.query('UPDATE chat_numbers SET verified_by = NULL WHERE id = $1', [ours.id]);
    assert.equal(await ours.receive(message(ADA)), false);
    assert.equal(
      await projectInbound(pool, { provider: 'meta', phoneNumberId: 'none', events: [] }, LINK, UNLIMITED_RECEIVED),
      false,
    );
    assert.deepEqual([await contacts(ours), await events(ours)], [[], []]);
  });

  test("to another organization's number makes a contact of that organization only", async () => {
    const [ours, theirs] = [await line(), await line(await organization(pool))];
    await theirs.receive(message(ADA));
    assert.deepEqual([(await contacts(theirs)).length, (await contacts(ours)).length], [1, 0]);
    assert.deepEqual(await events(theirs), [], 'that organization has no endpoint, and ours gets nothing');
  });
});

describe('a contact', () => {
  test('known by its number gets the id of its user, and one known by its id the number', async () => {
    const [first, second] = [await line(), await line()];
    await first.receive(message({ number: '+1416' + '5550001' }), message({ userId: 'CA.2' }));
    assert.equal((await contacts(first)).length, 2);
    const latest = message({ number: '+14165550001', userId: 'CA.2' });
    await first.receive(latest);
    await second.receive(latest, message({ userId: 'CA.2', number: '+14165550001' }, { sentAt: AT - 1 }));
    for (const each of [first, second]) {
      const [row, ...others] = await contacts(each);
      assert.deepEqual(others, []);
      assert.deepEqual([row?.wa_number, row?.user_id], ['+14165550001', 'CA.2']);
      assert.equal(row?.last_inbound_at, new Date(latest.sentAt as number).toISOString());
    }
  });

  test('loses its number to the user who wrote from it last', async () => {
    const ours = await line();
    const number = '+14165550002';
    const [old, late] = [message({ number, userId: 'CA.3' }), message({ number, userId: 'CA.4' })];
    await ours.receive(old, late, message({ number, userId: 'CA.3' }, { sentAt: AT }));
    const rows = await contacts(ours);
    assert.deepEqual(
      rows.map(({ user_id, wa_number }) => [user_id, wa_number]),
      [
        ['CA.3', null],
        ['CA.4', number],
      ],
    );
  });

  test('keeps its new number when a message from before the change is late', async () => {
    const ours = await line();
    const before = { number: '+14165550005', userId: 'CA.7' };
    await ours.receive({ kind: 'userChange', before, after: { number: '+14165550006', userId: 'CA.8' } });
    await ours.receive(message(before));
    const [row, ...others] = await contacts(ours);
    assert.deepEqual(others, []);
    assert.deepEqual([row?.wa_number, row?.user_id, row?.former_user_id], ['+14165550006', 'CA.8', 'CA.7']);
  });

  test('stays one contact when its id changes, in any order of the change and messages with either id', async () => {
    const change: InboundEvent = {
      kind: 'userChange',
      before: { number: '+14165550003', userId: 'CA.5' },
      after: { number: '+14165550004', userId: 'CA.6' },
    };
    const before = message({ number: '+14165550003', userId: 'CA.5' });
    const after = message({ userId: 'CA.6' });
    const numbered = message({ number: '+14165550004' });
    const all: InboundEvent[] = [before, after, numbered, change];
    const orders = all.flatMap((a) => all.flatMap((b) => all.flatMap((c) => all.map((d) => [a, b, c, d]))));
    const permutations = orders.filter((order) => new Set(order).size === all.length);
    assert.equal(permutations.length, 24);
    for (const order of permutations) {
      const ours = await line();
      for (const event of order) await ours.receive(event);
      const kinds = order.map((event) => all.indexOf(event)).join();
      const rows = await contacts(ours);
      assert.equal(rows.length, 1, kinds);
      const { user_id, former_user_id, last_inbound_at } = rows[0] as Row;
      assert.deepEqual([user_id, former_user_id], ['CA.6', 'CA.5'], kinds);
      assert.equal(last_inbound_at, new Date(numbered.sentAt as number).toISOString(), kinds);
    }
  });
});

test('1,000 events in any order, a fifth of them twice, make one contact per user and one webhook per message', async () => {
  const USERS = 60;
  const numbers = await Promise.all([line(), line()]);
  // Of ten users three withhold their numbers; those of two others were known before their ids.
  const identify = (user: number, round: number): Partial<ChatUser> => {
    const number = `+1416555${1_000 + user}`;
    const userId = `CA.user${user}`;
    if (user % 10 < 3) return { userId };
    if (user % 10 < 5 && round % 3 === 0) return { number };
    return round % 2 ? { number, userId } : { userId, number, username: `name${user}` };
  };
  const sent = Array.from({ length: 833 }, (_, turn) => message(identify(turn % USERS, Math.floor(turn / USERS))));
  const all = [...sent, ...sent.filter((_, index) => index % 5 === 0)];
  const [shuffled = []] = fc.sample(fc.shuffledSubarray(all, { minLength: all.length }), 1);
  assert.equal(shuffled.length, 1_000);
  const queue = shuffled.map((event) => ({
    event,
    to: numbers[Number(event.providerMessageId.slice(-1)) % 2] as Line,
  }));
  const worker = async () => {
    for (let next = queue.pop(); next; next = queue.pop()) await next.to.receive(next.event);
  };
  await Promise.all(Array.from({ length: 6 }, worker));
  const found = await Promise.all(numbers.map(contacts));
  for (const [index, rows] of found.entries()) {
    const own = sent.filter((event) => Number(event.providerMessageId.slice(-1)) % 2 === index);
    const expected = new Set(own.map(({ user }) => user.userId ?? `CA.user${Number(user.number?.slice(-4)) - 1_000}`));
    assert.equal(rows.length, expected.size);
    for (const { user_id, wa_number, last_inbound_at } of rows) {
      const user = Number(user_id?.slice('CA.user'.length));
      assert.equal(wa_number, user % 10 < 3 ? null : `+1416555${1_000 + user}`);
      const times = own.flatMap((event) => (sent.indexOf(event) % USERS === user ? [event.sentAt as number] : []));
      assert.equal(last_inbound_at, new Date(Math.max(...times)).toISOString());
    }
  }
  const published = (await Promise.all(numbers.map(events))).flat();
  assert.equal(published.length, sent.length);
});
