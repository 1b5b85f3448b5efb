import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { OutgoingChat } from '../../src/domain/chat/chat.ts';
import type { ChatProvider } from '../../src/providers/chat-provider.ts';
import type { EmailProvider } from '../../src/providers/email-provider.ts';
import { observeChatProvider, observeEmailProvider } from '../../src/providers/observed.ts';
import { providerCalled } from '../../src/telemetry/topics.ts';
import type { Attributes, Tracer } from '../../src/telemetry/tracer.ts';
import { TEXT } from '../store/chats.ts';
import { outgoing } from './outgoing.ts';

/** Collects the published calls without their durations. */
function recordCalls(t: TestContext): unknown[] {
  const calls: unknown[] = [];
  t.after(
    providerCalled.listen(({ provider, operation, seconds, outcomes }) => {
      assert.ok(seconds >= 0 && seconds < 10, `${seconds} s`);
      calls.push([provider, operation, Object.fromEntries(outcomes)]);
    }),
  );
  return calls;
}

function recorder(): { tracer: Tracer; spans: { name: string; attributes: Attributes; failed: boolean }[] } {
  const spans: { name: string; attributes: Attributes; failed: boolean }[] = [];
  const tracer: Tracer = {
    current: () => undefined,
    span(name, { attributes }, work) {
      const span = { name, attributes, failed: false };
      spans.push(span);
      return work({
        setAttributes: (more) => void (span.attributes = { ...span.attributes, ...more }),
        fail: () => void (span.failed = true),
      });
    },
  };
  return { tracer, spans };
}

describe('a provider of email that is observed', () => {
  const provider = (given: Partial<EmailProvider> = {}): EmailProvider => ({
    name: 'smtp',
    callSize: 7,
    overlap: 0,
    hasTracking: false,
    refusal: () => 'too large',
    send: async (emails) =>
      emails.map((_, i) => (i === 0 ? { kind: 'sent', messageId: 'm' } : { kind: 'busy', detail: 'x' })),
    ...given,
  });

  test('forwards calls and has only the optional methods of the provider', async () => {
    const plain = observeEmailProvider(provider());
    assert.equal(plain.name, 'smtp');
    assert.equal(plain.callSize, 7);
    assert.equal(plain.refusal(outgoing()), 'too large');
    assert.deepEqual(Object.keys(plain).sort(), ['callSize', 'hasTracking', 'name', 'overlap', 'refusal', 'send']);
    const found = new Map([['em_1', 'm']]);
    const able = observeEmailProvider(provider({ find: async () => found, reports: async () => [] }));
    assert.equal(await able.find?.('call_1'), found);
    assert.deepEqual(await able.reports?.('em_1', 'm'), []);
  });

  test('publishes the outcomes of each call', async (t) => {
    const calls = recordCalls(t);
    const observed = observeEmailProvider(
      provider({ find: async () => new Map(), reports: () => Promise.reject(new Error('no')) }),
    );
    assert.equal((await observed.send([outgoing(), outgoing(), outgoing()], 'call_1')).length, 3);
    await observed.find?.('call_1');
    await assert.rejects(observed.reports?.('em_1', 'm') ?? Promise.resolve(), /no/);
    assert.deepEqual(calls, [
      ['smtp', 'send', { sent: 1, busy: 2 }],
      ['smtp', 'find', { answered: 1 }],
      ['smtp', 'report', { failed: 1 }],
    ]);
  });

  test('has a span for each call with ids and counts, which fails with the call', async () => {
    const { tracer, spans } = recorder();
    const observed = observeEmailProvider(provider(), tracer);
    const email = outgoing();
    await observed.send([email], 'call_1');
    await observed.send([outgoing(), outgoing()], 'call_2');
    const common = { 'sendwright.provider': 'smtp', 'sendwright.outcome.sent': 1 };
    const [single, group] = [
      { 'sendwright.call': 'call_1', 'sendwright.messages': 1, 'sendwright.message.id': email.id },
      { 'sendwright.call': 'call_2', 'sendwright.messages': 2, 'sendwright.outcome.busy': 1 },
    ];
    assert.deepEqual(spans, [
      { name: 'smtp send', attributes: { ...common, ...single }, failed: false },
      { name: 'smtp send', attributes: { ...common, ...group }, failed: true },
    ]);
  });
});

test('an observed chat provider publishes its calls and no part of the message', async (t) => {
  const calls = recordCalls(t);
  const { tracer, spans } = recorder();
  const message: OutgoingChat = { id: 'wa_1', type: 'text', from: '+12025550199', to: '+14165550177', content: TEXT };
  const provider: ChatProvider = {
    name: 'meta',
    refusal: () => undefined,
    send: async (_message, expired) => expired?.() ?? { kind: 'refused', detail: 'no' },
    find: async (_message, { fromMs, untilMs }) => `${fromMs} ${untilMs}`,
  };
  const observed = observeChatProvider(provider, tracer);
  assert.deepEqual(await observed.send(message), { kind: 'refused', detail: 'no' });
  const tooLate = { kind: 'busy', detail: 'late' } as const;
  assert.equal(await observed.send(message, () => tooLate), tooLate);
  assert.equal(await observed.find?.(message, { fromMs: 5, untilMs: 7 }), '5 7');
  assert.ok(!('report' in observed), 'it has no further methods');
  assert.deepEqual(calls, [
    ['meta', 'send', { refused: 1 }],
    ['meta', 'send', { busy: 1 }],
    ['meta', 'find', { answered: 1 }],
  ]);
  assert.deepEqual(
    spans.map(({ name }) => name),
    ['meta send', 'meta send', 'meta find'],
  );
  assert.doesNotMatch(JSON.stringify(spans), /555|Hello/);
});
