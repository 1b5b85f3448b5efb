import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { type OutgoingEmail, toCopy } from '../../src/domain/email/outgoing.ts';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { parsePostmarkCallback } from '../../src/providers/postmark/callbacks.ts';
import { addresses, outgoing } from './outgoing.ts';
import { MESSAGE_ID, OPEN } from './postmark-records.ts';
import { answering, httpServer, recordingServer } from './servers.ts';
import { at, CALL, simulator } from './simulator.ts';

/** A server that takes batches of messages of this size, or rejects some. `sizes` are messages per request. */
async function batchServer(t: TestContext, messageBytes: number, isRejected: (n: number) => boolean = () => false) {
  const sizes: number[] = [];
  const { url } = await recordingServer(t, ({ body }) => {
    const count = Math.round(body.length / messageBytes);
    const n = sizes.push(count);
    const answers = Array.from({ length: count }, (_, i) =>
      isRejected(n) ? { ErrorCode: 300, Message: 'no' } : { ErrorCode: 0, MessageID: `${n} ${i}` },
    );
    return { body: count === 1 ? answers[0] : answers };
  });
  return { url, sizes };
}

describe('a call for many', { concurrency: true }, () => {
  const kinds = (outcomes: readonly SendOutcome[]) => outcomes.map(({ kind }) => kind);
  const many = (n: number): OutgoingEmail[] => Array.from({ length: n }, () => outgoing());

  test('answers each email by its own answer, in their order', async (t) => {
    const { postmarkUrl, inbox } = await simulator(t);
    const emails = [
      outgoing({ subject: 'first' }),
      outgoing({ to: ['fail-always@example.net'] }),
      outgoing({ to: ['who?@example.net'] }),
      outgoing({ subject: 'last' }),
    ];
    const outcomes = await at(postmarkUrl).send(emails, CALL);
    assert.deepEqual(kinds(outcomes), ['sent', 'busy', 'rejected', 'sent']);
    const byId = new Map((await inbox()).map((message) => [message.id, message.subject]));
    const subjects = outcomes.map((outcome) => outcome.kind === 'sent' && byId.get(outcome.messageId));
    assert.deepEqual(subjects, ['first', false, false, 'last']);
  });

  test('makes one request for 500 emails', async (t) => {
    const { postmarkUrl, behave } = await simulator(t);
    await behave({ fail_next: 1, status: 429 });
    assert.deepEqual(new Set(kinds(await at(postmarkUrl).send(many(500), CALL))), new Set(['busy']));
    assert.deepEqual(new Set(kinds(await at(postmarkUrl).send(many(500), CALL))), new Set(['sent']));
  });

  test('makes as many requests as the files of its copies need, each below 50 MB', async (t) => {
    const { url, sizes } = await batchServer(t, 9_300_000, (n) => n === 2);
    const content = Buffer.alloc(7_000_000);
    const file = { filename: 'a.pdf', contentType: 'application/pdf', contentId: null, content };
    const email = { ...outgoing({ to: addresses(7) }), files: [file] };
    const copies = Array.from({ length: 7 }, (_, i) => toCopy(email, i));
    const outcomes = await at(url).send(copies, CALL);
    assert.deepEqual(sizes, [3, 3, 1]);
    assert.deepEqual(kinds(outcomes), ['sent', 'sent', 'sent', 'rejected', 'rejected', 'rejected', 'sent']);
  });

  for (const [name, body] of [
    ['HTML', '<p>Hello'],
    ['too few answers', [{ ErrorCode: 0, MessageID: 'a' }]],
    [
      'too many answers',
      [
        { ErrorCode: 0, MessageID: 'a' },
        { ErrorCode: 0, MessageID: 'b' },
        { ErrorCode: 0, MessageID: 'c' },
      ],
    ],
    ['no list', { ErrorCode: 0, MessageID: 'a' }],
    ['answers without fields', [null, {}]],
  ] as const) {
    test(`is unknown for all emails if the answer is ${name}`, async (t) => {
      const url = await httpServer(t, answering({ body }));
      assert.deepEqual(kinds(await at(url).send(many(2), CALL)), ['unknown', 'unknown']);
    });
  }

  for (const [status, body] of [
    [413, '<p>Request Entity Too Large'],
    [422, { ErrorCode: 403, Message: 'incompatible JSON' }],
    [200, { ErrorCode: 300, Message: 'no' }],
  ] as const) {
    test(`whose refusal as a whole (${status}, ${JSON.stringify(body)}) rejects none of them`, async (t) => {
      const url = await httpServer(t, answering({ status, body }));
      assert.deepEqual(kinds(await at(url).send(many(2), CALL)), ['busy', 'busy']);
    });
  }
});

describe('asking about a call', { concurrency: true }, () => {
  const find = (url: string, call: string) => at(url).find?.(call);

  test('returns the emails of the call that Postmark has', async (t) => {
    const { postmarkUrl, behave } = await simulator(t);
    const provider = at(postmarkUrl);
    const [first, second] = [outgoing(), outgoing()];
    const [sent] = await provider.send([first], CALL);
    await behave({ reset_after_accept: 1 });
    await provider.send([second], 'call_00000000000000000000000002');

    assert.ok(sent?.kind === 'sent');
    assert.deepEqual(await find(postmarkUrl, CALL), new Map([[first.id, sent.messageId]]));
    const found = await find(postmarkUrl, 'call_00000000000000000000000002');
    assert.deepEqual([...(found?.keys() ?? [])], [second.id]);
  });

  test('finds marketing email on the broadcast stream', async (t) => {
    const { postmarkUrl } = await simulator(t);
    const [news, receipt] = [outgoing({ marketing: true }), outgoing()];
    await at(postmarkUrl).send([news], CALL);
    await at(postmarkUrl).send([receipt], 'call_00000000000000000000000002');
    assert.deepEqual([...((await find(postmarkUrl, CALL))?.keys() ?? [])], [news.id]);
    assert.deepEqual([...((await find(postmarkUrl, news.id))?.keys() ?? [])], [news.id]);
    assert.deepEqual([...((await find(postmarkUrl, receipt.id))?.keys() ?? [])], [receipt.id]);
  });

  test('finds emails on one stream if the server does not have the other', async (t) => {
    const answers = [
      { status: 200, body: { Messages: [{ MessageID: 'x', Metadata: { email: 'em_1' } }] } },
      { status: 422, body: { ErrorCode: 1226, Message: 'No such stream.' } },
    ];
    const url = await httpServer(t, (request, response) => {
      const { status, body } = answers[request.url?.includes('messagestream=outbound') ? 0 : 1] as (typeof answers)[0];
      response.writeHead(status).end(JSON.stringify(body));
    });
    assert.deepEqual(await find(url, CALL), new Map([['em_1', 'x']]));
  });

  test('finds one email of any call by its id', async (t) => {
    const { postmarkUrl } = await simulator(t);
    const [email, other] = [outgoing(), outgoing()];
    await at(postmarkUrl).send([email, other], CALL);
    assert.deepEqual([...((await find(postmarkUrl, email.id))?.keys() ?? [])], [email.id]);
    assert.deepEqual(await find(postmarkUrl, outgoing().id), new Map());
    const copied = outgoing({ to: addresses(3) });
    await at(postmarkUrl).send([toCopy(copied, 0)], CALL);
    await at(postmarkUrl).send([toCopy(copied, 2)], 'call_00000000000000000000000002');
    const copies = await find(postmarkUrl, copied.id);
    assert.deepEqual([...(copies?.keys() ?? [])].sort(), [`${copied.id}.0`, `${copied.id}.2`]);
  });

  test('finds no email that Postmark does not have or does not see yet', async (t) => {
    const { postmarkUrl, behave } = await simulator(t);
    assert.deepEqual(await find(postmarkUrl, CALL), new Map());
    await at(postmarkUrl).send([outgoing()], CALL);
    await behave({ search_lag_ms: 60_000 });
    assert.deepEqual(await find(postmarkUrl, CALL), new Map());
    await behave({});
    assert.equal((await find(postmarkUrl, CALL))?.size, 1);
  });

  test('finds all accepted emails of a group of 500', async (t) => {
    const { postmarkUrl } = await simulator(t);
    const emails = Array.from({ length: 500 }, (_, i) => outgoing(i === 7 ? { to: ['who?@example.net'] } : {}));
    await at(postmarkUrl).send(emails, CALL);
    const found = await find(postmarkUrl, CALL);
    assert.deepEqual(new Set(found?.keys()), new Set(emails.filter((_, i) => i !== 7).map(({ id }) => id)));
  });

  for (const [name, answer] of [
    ['401', { status: 401, body: { ErrorCode: 10, Message: 'no' } }],
    ['messages without metadata', { body: { TotalCount: 1, Messages: [{ MessageID: 'x' }] } }],
  ] as const) {
    test(`rejects when the answer is ${name}`, async (t) => {
      const url = await httpServer(t, answering(answer));
      await assert.rejects(async () => find(url, CALL));
    });
  }
});

describe('an open in the history of a message', { concurrency: true }, () => {
  /** Reads the history of a message that was opened once, with these details. */
  async function reported(t: TestContext, Details: object) {
    const { Recipient, ReceivedAt } = OPEN;
    const MessageEvents = [{ Type: 'Opened', Recipient, ReceivedAt, Details }];
    const url = await httpServer(t, answering({ body: { MessageEvents } }));
    return at(url).reports?.(OPEN.Metadata.email, MESSAGE_ID);
  }

  const chrome = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0';
  const gmail = 'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)';
  for (const [UserAgent, place, change] of [
    ['Mozilla/5.0', '', 'opened_by_machine'],
    ['Mozilla/5.0', ' from Cork, Ireland', 'opened_by_machine'],
    ['Mozilla/5.0', ' from Frankfurt am Main (Westend), Hessen', 'opened_by_machine'],
    ['Barracuda Sentinel (EE)', ' from Santiago de Cali, Departamento del Valle del Cauca', 'opened_by_machine'],
    [gmail, '', 'opened'],
    [chrome, ' from Cork, Ireland', 'opened'],
  ] as const) {
    test(`with ${UserAgent}${place} is the report of its callback: ${change}`, async (t) => {
      const callback = parsePostmarkCallback({ ...OPEN, UserAgent }, () => true, 'broadcast');
      assert.ok(callback.kind === 'feedback' && callback.feedback.change === change);
      const { evidence } = callback.feedback;
      const reports = await reported(t, { Summary: `Email opened with ${UserAgent}${place}` });
      assert.deepEqual(
        reports?.map((report) => ({ ...report, evidence })),
        [callback.feedback],
      );
    });
  }

  for (const details of [
    {},
    { Summary: null },
    { Summary: '' },
    { Summary: 'Opened' },
    { Summary: 'Email opened with ' },
  ]) {
    test(`with ${JSON.stringify(details)} is one of a person`, async (t) => {
      const [report] = (await reported(t, details)) ?? [];
      assert.equal(report?.change, 'opened');
    });
  }
});
