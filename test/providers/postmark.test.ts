import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, test, type TestContext } from 'node:test';
import type { SendOutcome } from '../../src/domain/email/retry.ts';
import { outgoing } from './outgoing.ts';
import { type Answer, answering, closedPort, httpServer } from './servers.ts';
import { at, CALL, simulator } from './simulator.ts';

async function sendOne(baseUrl: string, email = outgoing(), timeout?: number): Promise<SendOutcome> {
  const outcomes = await at(baseUrl, timeout).send([email], CALL);
  assert.equal(outcomes.length, 1);
  return outcomes[0] as SendOutcome;
}

/** The outcome of an answer. */
async function outcomeOf(t: TestContext, answer: Answer): Promise<SendOutcome> {
  const url = await httpServer(t, answering(answer));
  return sendOne(url);
}

describe('an answer with 200', { concurrency: true }, () => {
  test('and a message id is a sent email', async (t) => {
    const { postmarkUrl, inbox } = await simulator(t);
    const outcome = await sendOne(postmarkUrl);
    const [message] = await inbox();
    assert.ok(outcome.kind === 'sent' && outcome.messageId === message?.id);
    assert.ok(Math.abs(Date.now() - (outcome.acceptedAt ?? 0)) < 60_000, `accepted at ${outcome.acceptedAt}`);
  });

  for (const [SubmittedAt, acceptedAt] of [
    ['2026-03-01T09:30:00.1234567Z', { acceptedAt: Date.UTC(2026, 2, 1, 9, 30, 0, 123) }],
    ['2026-03-01T04:30:00-05:00', { acceptedAt: Date.UTC(2026, 2, 1, 9, 30) }],
    ['some day', {}],
    [undefined, {}],
  ] as const) {
    test(`and the time ${SubmittedAt} is a sent email with ${JSON.stringify(acceptedAt)}`, async (t) => {
      const body = JSON.stringify({ ErrorCode: 0, MessageID: 'm', Message: 'OK', SubmittedAt });
      assert.deepEqual(await outcomeOf(t, { status: 200, body }), { kind: 'sent', messageId: 'm', ...acceptedAt });
    });
  }

  for (const [name, body] of [
    ['HTML', '<!doctype html><p>Hello'],
    ['nothing', ''],
    ['a message id without a code', { MessageID: 'b7bc2f4a' }],
    ['a code that is no number', { ErrorCode: '300', Message: 'no' }],
  ] as const) {
    test(`and ${name} is unknown`, async (t) => {
      const outcome = await outcomeOf(t, { body });
      assert.equal(outcome.kind, 'unknown');
    });
  }
});

describe('a refusal', { concurrency: true }, () => {
  for (const [kind, codes] of Object.entries({
    rejected: [300, 402, 403, 409, 410, 411, 9_999],
    bounced: [406],
    // The stream (1235, 1236) is a setting of ours, not of the email.
    account: [10, 400, 401, 404, 405, 407, 412, 413, 422, 499, 1235, 1236, 1480],
    busy: [100],
  })) {
    test(`422 with ErrorCode ${codes.join(', ')} is ${kind} with Postmark's message`, async (t) => {
      for (const code of codes) {
        const outcome = await outcomeOf(t, { status: 422, body: { ErrorCode: code, Message: 'Why.' } });
        assert.equal(outcome.kind, kind, String(code));
        assert.match('detail' in outcome ? outcome.detail : '', new RegExp(`Why\\. \\(ErrorCode ${code}\\)$`));
      }
    });
  }

  for (const code of [1235, 1236]) {
    test(`with ErrorCode ${code} concerns the message stream, not the whole account`, async (t) => {
      const outcome = await outcomeOf(t, { status: 422, body: { ErrorCode: code, Message: 'no' } });
      assert.ok(outcome.kind === 'account' && outcome.scope === 'stream');
    });
  }

  test('of an email whose recipients are all inactive is a bounce with its reason', async (t) => {
    const outcome = await outcomeOf(t, {
      status: 422,
      body: { ErrorCode: 406, Message: 'Found inactive addresses: a@example.net.' },
    });
    assert.deepEqual(outcome, {
      kind: 'bounced',
      reason: 'provider_suppressed',
      detail: 'Postmark refused it: Found inactive addresses: a@example.net. (ErrorCode 406)',
    });
  });

  test('with 422 that does not come from Postmark is no refusal of the email', async (t) => {
    for (const body of ['', '<p>blocked', '{}', '{"error":"blocked"}'])
      assert.equal((await outcomeOf(t, { status: 422, body })).kind, 'account', body);
  });

  test('of our token is about the account', async (t) => {
    const { postmarkUrl } = await simulator(t);
    const [outcome] = await at(postmarkUrl, 60, 'wrong').send([outgoing()], CALL);
    assert.deepEqual(outcome, {
      kind: 'account',
      detail: 'Postmark answered 401: The Server Token you provided in X-Postmark-Server-Token is wrong.',
    });
  });

  test('with 400, 403, 404, 405 or 415 is about the account or its address', async (t) => {
    for (const status of [400, 403, 404, 405, 415])
      assert.equal((await outcomeOf(t, { status, body: 'no' })).kind, 'account', String(status));
  });

  test('concerns the whole account only with a code of Postmark for it', async (t) => {
    const scopeOf = async (status: number, body: unknown) => {
      const outcome = await outcomeOf(t, { status, body });
      return outcome.kind === 'account' && (outcome.scope ?? 'account');
    };
    assert.equal(await scopeOf(401, { ErrorCode: 10, Message: 'Bad token.' }), 'account');
    assert.equal(await scopeOf(422, { ErrorCode: 412, Message: 'Pending approval.' }), 'account');
    for (const status of [401, 403, 422]) assert.equal(await scopeOf(status, 'blocked'), 'organization');
  });

  test('for its size is rejected', async (t) => {
    for (const body of ['<p>Request Entity Too Large', { ErrorCode: 300, Message: 'too large' }])
      assert.equal((await outcomeOf(t, { status: 413, body })).kind, 'rejected');
  });

  test('that redirects is not followed, since the token is for one host', async (t) => {
    const visits: string[] = [];
    const other = await httpServer(t, ({ method }, response) => {
      visits.push(String(method));
      response.end('{"ErrorCode":0,"MessageID":"x"}');
    });
    for (const status of [301, 302, 303, 307, 308])
      assert.equal((await outcomeOf(t, { status, headers: { location: `${other}/email` } })).kind, 'account');
    assert.deepEqual(visits, []);
  });
});

describe('busy', { concurrency: true }, () => {
  for (const status of [429, 503]) {
    test(`${status} is busy; its Retry-After in seconds is kept`, async (t) => {
      const { postmarkUrl, behave, inbox } = await simulator(t);
      const detail = `Postmark answered ${status}: A switch of the simulator asks for this.`;
      await behave({ fail_next: 1, status, retry_after: 17 });
      assert.deepEqual(await sendOne(postmarkUrl), { kind: 'busy', detail, afterMs: 17_000 });
      if (status === 429) {
        await behave({ fail_next: 1, status });
        assert.deepEqual(await sendOne(postmarkUrl), { kind: 'busy', detail });
      }
      assert.deepEqual(await inbox(), []);
      assert.equal((await sendOne(postmarkUrl)).kind, 'sent');
    });
  }

  test('a Retry-After applies to its own call only', async (t) => {
    let turn = 0;
    const url = await httpServer(t, (request, response) => {
      answering({ status: 429, ...(turn++ === 0 && { headers: { 'retry-after': '9' } }) })(request, response);
    });
    const provider = at(url);
    const [first] = await provider.send([outgoing()], CALL);
    const [second] = await provider.send([outgoing()], CALL);
    assert.deepEqual(
      [first, second].map((outcome) => outcome && 'afterMs' in outcome),
      [true, false],
    );
  });

  test('a refused connection is busy', async () => {
    assert.deepEqual(await sendOne(`http://127.0.0.1:${await closedPort()}`), {
      kind: 'busy',
      detail: 'Postmark could not be reached: connection refused.',
    });
  });
});

describe('the outcome is unknown', { concurrency: true }, () => {
  for (const status of [500, 503]) {
    test(`for a ${status} without Retry-After after the message was accepted`, async (t) => {
      const { postmarkUrl, behave, inbox } = await simulator(t);
      await behave({ fail_after_accept: 1, status });
      const detail = `Postmark answered ${status}: A switch of the simulator asks for this.`;
      assert.deepEqual(await sendOne(postmarkUrl), { kind: 'unknown', detail });
      assert.equal((await inbox()).length, 1);
    });
  }

  for (const [name, switches, detail, arrived] of [
    ['for a reset before the message was accepted', { reset_before_accept: 1 }, 'connection lost', 0],
    ['for a reset after the message was accepted', { reset_after_accept: 1 }, 'connection lost', 1],
    ['for no answer until the timeout', { hang: 1 }, 'no answer in time', 1],
  ] as const) {
    test(name, async (t) => {
      const { postmarkUrl, behave, inbox } = await simulator(t);
      await behave(switches);
      const outcome = await sendOne(postmarkUrl, outgoing(), 2);
      assert.deepEqual(outcome, { kind: 'unknown', detail: `Postmark did not answer: ${detail}.` });
      assert.equal((await inbox()).length, arrived);
    });
  }

  const halfAnAnswer = (status: number, response: ServerResponse) => {
    response.writeHead(status, { 'content-length': '1000', 'content-type': 'application/json' });
    response.write('{"ErrorCode":0,"MessageID":"b7bc2f4a-e38e-4336-af7d-e6c392c2f817"');
  };

  for (const status of [200, 422]) {
    test(`for a reset in the body of a ${status}`, async (t) => {
      const url = await httpServer(t, (request, response) => {
        halfAnAnswer(status, response);
        setTimeout(() => request.socket.resetAndDestroy(), 50);
      });
      assert.equal((await sendOne(url)).kind, 'unknown');
    });
  }

  test('for a 200 whose body is longer than what is read of it', async (t) => {
    const body = `${' '.repeat(32 * 1_048_576)}{"ErrorCode":0,"MessageID":"b7bc2f4a-e38e-4336-af7d-e6c392c2f817"}`;
    assert.equal((await outcomeOf(t, { status: 200, body: body.trimStart() })).kind, 'sent');
    assert.equal((await outcomeOf(t, { status: 200, body })).kind, 'unknown');
  });

  test('for 408, 502, 504 and 520, which come from a proxy', async (t) => {
    for (const status of [408, 502, 504, 520])
      assert.equal((await outcomeOf(t, { status, body: '<p>Bad Gateway' })).kind, 'unknown', String(status));
  });
});
