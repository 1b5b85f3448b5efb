import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { BounceReason } from '../../src/domain/email/email.ts';
import type { Feedback } from '../../src/domain/email/feedback.ts';
import { type Callback, parsePostmarkCallback } from '../../src/providers/postmark/callbacks.ts';
import { BOUNCE, CLICK, COMPLAINT, DELIVERY, MESSAGE_ID, OPEN, SUBSCRIPTION_CHANGE } from './postmark-records.ts';

const NO_EFFECT: Callback = { kind: 'none' };
/** The evidence of an unsigned record of the examples. */
const EVIDENCE = { messageId: MESSAGE_ID, isSigned: false };

function parse(body: unknown): Callback {
  return parsePostmarkCallback(body, (emailId, signature) => signature === `signed ${emailId}`, 'broadcast');
}

function feedback(body: unknown): Feedback {
  const callback = parse(body);
  assert.ok(callback.kind === 'feedback', JSON.stringify(callback));
  return callback.feedback;
}

const second = (time: string): number => Date.parse(time) / 1_000;

describe('a record of Postmark and what it reports', () => {
  const john = 'john@example.net';
  const key = (change: string, time: string) => `${change} ${MESSAGE_ID} ${john} ${second(time)}`;
  const error = 'The email account that you tried to reach does not exist.';
  const delay = { ...BOUNCE, Type: 'Transient', Details: 'smtp;451 4.7.1 come back later', Inactive: false };
  const pairs: readonly (readonly [string, object, Omit<Feedback, 'emailId' | 'recipient'>])[] = [
    ['Delivery', DELIVERY, { change: 'delivered', dedupeKey: key('delivered', '2026-03-01T09:30:00Z') }],
    ['Open', OPEN, { change: 'opened', dedupeKey: key('opened', '2026-03-01T09:31:00Z') }],
    [
      'Click',
      CLICK,
      {
        change: 'clicked',
        link: CLICK.OriginalLink,
        dedupeKey: `${key('clicked', '2026-03-01T09:32:00Z')} ${CLICK.OriginalLink}`,
      },
    ],
    [
      'Bounce',
      { ...BOUNCE, Details: `smtp;550 5.1.1 ${error}` },
      {
        change: 'bounced',
        bounceReason: 'mailbox_not_found',
        error: `The recipient's server refused it: 550 5.1.1 ${error}`,
        dedupeKey: 'bounce 4323372036854',
      },
    ],
    [
      'Bounce that is a delay',
      delay,
      { change: 'delivery_delayed', dedupeKey: key('delivery_delayed', '2026-03-01T09:33:00Z') },
    ],
    ['SpamComplaint', COMPLAINT, { change: 'complained', dedupeKey: 'bounce 42' }],
    [
      'SubscriptionChange by the recipient',
      SUBSCRIPTION_CHANGE,
      { change: 'unsubscribed', dedupeKey: key('unsubscribed', '2026-03-01T09:34:00Z') },
    ],
  ];
  for (const [name, record, expected] of pairs) {
    test(name, () => {
      const recipient = name === 'Delivery' ? DELIVERY.Recipient : john;
      const feedback = { emailId: 'em_1', recipient, ...expected, evidence: EVIDENCE };
      assert.deepEqual(parse(record), { kind: 'feedback', feedback });
    });
  }
});

describe('a bounce by its type', () => {
  const NO_REPLY = '';
  const FULL = 'smtp;552 5.2.2 mailbox full';
  const YAHOO =
    'smtp;554 5.7.9 Message not accepted for policy reasons. See https://postmaster.yahooinc.com/error-codes';
  const active = { Inactive: false };
  const pairs: readonly (readonly [
    string,
    string,
    BounceReason | 'delayed' | 'complained' | 'unsubscribed',
    object?,
  ])[] = [
    // Without a reply of the server, the type decides.
    ['HardBounce', NO_REPLY, 'mailbox_not_found'],
    ['BadEmailAddress', NO_REPLY, 'mailbox_not_found'],
    ['SpamNotification', NO_REPLY, 'spam_block', active],
    ['Blocked', NO_REPLY, 'reputation_block', active],
    ['DMARCPolicy', NO_REPLY, 'authentication_failure', active],
    ['ManuallyDeactivated', NO_REPLY, 'provider_suppressed'],
    ['SMTPApiError', NO_REPLY, 'provider_suppressed'],
    ['DnsError', NO_REPLY, 'dns_failure'],
    ['DnsError', NO_REPLY, 'delayed', active],
    ['SoftBounce', NO_REPLY, 'unknown'],
    ['SoftBounce', NO_REPLY, 'delayed', active],
    ['Transient', NO_REPLY, 'delayed', active],
    ['SpamComplaint', NO_REPLY, 'complained'],
    ['Unsubscribe', NO_REPLY, 'unsubscribed'],
    // A reply of the server takes precedence, except over Postmark's own decisions.
    ['HardBounce', FULL, 'mailbox_full'],
    ['SoftBounce', FULL, 'mailbox_full', active],
    // An address that Postmark keeps active is not suppressed, and its own decision about DMARC precedes the reply.
    ['DMARCPolicy', YAHOO, 'authentication_failure', active],
    ['DMARCPolicy', 'smtp;550 5.7.1 rejected by company policy', 'authentication_failure'],
    ['Blocked', 'smtp;550 5.7.1 rejected by company policy', 'reputation_block', active],
    ['Blocked', 'smtp;550 5.7.1 rejected by company policy', 'policy_block'],
    ['SpamNotification', 'smtp;550 5.1.1 user unknown', 'spam_block', active],
    ['SoftBounce', 'smtp;550 5.2.1 mailbox disabled', 'reputation_block', active],
    ['HardBounce', 'smtp;550 5.1.1 user unknown', 'reputation_block', active],
    ['HardBounce', 'smtp;550 5.1.1 user unknown', 'mailbox_not_found'],
    ['ManuallyDeactivated', FULL, 'provider_suppressed'],
    ['SMTPApiError', FULL, 'provider_suppressed'],
    ['DnsError', 'smtp;550 5.4.4 host not found', 'delayed', active],
    ['Transient', 'smtp;550 5.1.1 user unknown', 'delayed'],
  ];
  for (const [Type, Details, expected, fields] of pairs) {
    const inactive = fields ? 'active' : 'inactive';
    test(`${Type}, ${inactive}, with ${JSON.stringify(Details)} is ${expected}`, () => {
      const { change, bounceReason, error } = feedback({ ...BOUNCE, Type, Details, ...fields });
      if (['delayed', 'complained', 'unsubscribed'].includes(expected)) {
        assert.deepEqual([change, bounceReason, error], [change, undefined, undefined]);
        assert.equal(change.replace('delivery_', ''), expected);
      } else {
        assert.deepEqual([change, bounceReason], ['bounced', expected]);
        assert.match(error ?? '', /^[A-Z].*: .+/);
      }
    });
  }

  test('without effect changes nothing', () => {
    for (const Type of ['Subscribe', 'AutoResponder', 'OpenRelayTest', 'SomethingNew', 'toString', '', 7, null])
      assert.deepEqual(parse({ ...BOUNCE, Type, Details: 'smtp;550 5.1.1 user unknown' }), NO_EFFECT, String(Type));
  });

  test('Unknown, while Postmark still sends there, is kept', () => {
    assert.deepEqual(parse({ ...BOUNCE, Type: 'Unknown', Details: FULL, Inactive: false }), NO_EFFECT);
  });
});

describe('the sentence about a bounce', () => {
  const sentence = (fields: object) => feedback({ ...BOUNCE, ...fields }).error;

  test('contains all lines of the reply without the name of the protocol', () => {
    const Details = 'SMTP;  550-5.7.26 Unauthenticated\r\n550 5.7.26 go away ';
    assert.equal(
      sentence({ Details }),
      "The recipient's server refused it: 550-5.7.26 Unauthenticated\r\n550 5.7.26 go away",
    );
  });

  test('distinguishes a missing server and an entry of Postmark’s list from a refusal', () => {
    const Details = 'smtp;550 5.4.4 no such host';
    assert.match(
      sentence({ Type: 'DnsError', Details }) ?? '',
      /domain cannot be found or reached: 550 5\.4\.4 no such/,
    );
    assert.match(sentence({ Type: 'ManuallyDeactivated' }) ?? '', /^Postmark no longer sends to this address: /);
  });

  test("is Postmark's description without a reply of the server, and complete without either", () => {
    assert.equal(sentence({}), `The recipient's server refused it: ${BOUNCE.Description}`);
    assert.equal(sentence({ Description: '' }), "The recipient's server refused it.");
    assert.equal(sentence({ Description: 7, Details: null }), "The recipient's server refused it.");
  });

  test('can be stored for any reply of the server', () => {
    const error = sentence({ Details: `smtp;550 a\0b\uD800 ${'x'.repeat(10_000)}` }) ?? '';
    assert.ok(error.isWellFormed() && !error.includes('\0'));
    assert.ok(error.length < 2_100, `${error.length} characters`);
  });
});

describe('two records are the same report', () => {
  const same = (one: object, other: object) => feedback(one).dedupeKey === feedback(other).dedupeKey;

  test('when only the precision or the zone of their time differs, or the case of the address', () => {
    assert.ok(same(DELIVERY, { ...DELIVERY, DeliveredAt: '2026-03-01T09:30:00Z' }));
    assert.ok(same(DELIVERY, { ...DELIVERY, DeliveredAt: '2026-03-01T04:30:00.0000000-05:00' }));
    assert.ok(same(DELIVERY, { ...DELIVERY, Recipient: 'JOHN@EXAMPLE.NET' }));
  });

  for (const [name, one, other] of [
    ['another message', DELIVERY, { MessageID: 'x' }],
    ['another recipient', DELIVERY, { Recipient: 'j@example.net' }],
    ['another time', DELIVERY, { DeliveredAt: '2026-03-01T09:30:01Z' }],
    ['another link', CLICK, { OriginalLink: 'https://example.com/b' }],
    ['another bounce', BOUNCE, { ID: 7 }],
    ['another kind', OPEN, { RecordType: 'Click', OriginalLink: '' }],
  ] as const) {
    test(`but not when it is about ${name}`, () => {
      assert.ok(!same(one, { ...one, ...other }));
    });
  }

  test('also with links of any length, in a key that fits into an index', () => {
    const long = (end: string) => ({ ...CLICK, OriginalLink: `https://example.com/${'x'.repeat(100_000)}${end}` });
    assert.ok(same(long('1'), long('1')));
    assert.ok(!same(long('1'), long('2')));
    assert.ok(feedback(long('1')).dedupeKey.length <= 300);
    assert.equal(feedback(long('1')).link?.length, 100_021);
  });
});

describe("a change of Postmark's own suppression list", () => {
  const read = (fields: object) => parse({ ...SUBSCRIPTION_CHANGE, ...fields });
  const change = (origin: string | null, isMarketing = true, evidence = EVIDENCE) => ({
    kind: 'suppression',
    suppression: { emailId: 'em_1', recipient: 'john@example.net', origin, isMarketing, evidence },
  });
  const MessageStream = 'outbound';

  test('by a bounce or a complaint goes to our list with its origin, on any stream', () => {
    assert.deepEqual(read({ SuppressionReason: 'HardBounce' }), change('provider'));
    assert.deepEqual(read({ SuppressionReason: 'SpamComplaint' }), change('complaint'));
    assert.deepEqual(read({ SuppressionReason: 'HardBounce', MessageStream }), change('provider', false));
  });

  test('by hand concerns all email on the transactional stream, and only marketing email on the broadcast stream', () => {
    for (const Origin of ['Customer', 'Admin']) {
      assert.deepEqual(read({ Origin, MessageStream }), change('provider', false));
      assert.deepEqual(read({ Origin }), change('unsubscribe'));
    }
  });

  test('that removes an address names the stream of its list', () => {
    assert.deepEqual(read({ SuppressSending: false, SuppressionReason: null }), change(null));
    assert.deepEqual(read({ SuppressSending: false, SuppressionReason: null, MessageStream }), change(null, false));
  });

  test('concerns all email if one stream sends it', () => {
    const record = { ...SUBSCRIPTION_CHANGE, Origin: 'Customer' };
    assert.deepEqual(
      parsePostmarkCallback(record, () => true, null),
      change('provider', false),
    );
  });

  test('needs no message', () => {
    const evidence = { messageId: '', isSigned: false };
    assert.deepEqual(read({ MessageID: null, Origin: 'Customer' }), change('unsubscribe', true, evidence));
    assert.equal(read({ MessageID: null }).kind, 'feedback');
  });

  test('without a change or a recipient changes nothing', () => {
    assert.deepEqual(read({ SuppressSending: undefined }), NO_EFFECT);
    assert.deepEqual(read({ SuppressSending: 'true' }), NO_EFFECT);
    assert.deepEqual(read({ Recipient: '' }), NO_EFFECT);
  });
});

describe('our signature of the email id', () => {
  for (const [sig, isSigned] of [
    ['signed em_1', true],
    ['signed em_2', false],
    [undefined, false],
    [['signed em_1'], false],
  ] as const) {
    test(`${JSON.stringify(sig)} is ${isSigned ? 'accepted' : 'not accepted'}`, () => {
      const Metadata = { email: 'em_1', sig };
      for (const record of [DELIVERY, BOUNCE, COMPLAINT, SUBSCRIPTION_CHANGE])
        assert.deepEqual(feedback({ ...record, Metadata }).evidence, { ...EVIDENCE, isSigned });
    });
  }
});

describe('a record that is ignored', () => {
  for (const [name, body] of [
    ['nothing', undefined],
    ['another record type', { ...DELIVERY, RecordType: 'Inbound' }],
    ['no metadata', { ...DELIVERY, Metadata: undefined }],
    ['a text for metadata', { ...DELIVERY, Metadata: 'em_1' }],
    ['an id that is no text', { ...DELIVERY, Metadata: { email: 7 } }],
    ['an id that cannot be stored', { ...DELIVERY, Metadata: { email: 'em_\0' } }],
    ['no message id', { ...DELIVERY, MessageID: undefined }],
    ['a recipient that cannot be stored', { ...DELIVERY, Recipient: 'a\uD800@example.net' }],
    ['an invalid time', { ...DELIVERY, DeliveredAt: 'yesterday' }],
    ['a bounce without an id', { ...BOUNCE, ID: undefined }],
    ['a bounce without an address', { ...BOUNCE, Email: null }],
  ] as const) {
    test(name, () => {
      assert.deepEqual(parse(body), NO_EFFECT);
    });
  }
});

describe('an open or click', () => {
  test('is one of a machine if its user agent is, and the same report otherwise', () => {
    for (const record of [OPEN, CLICK]) {
      const person = feedback(record);
      const machine = { ...person, change: `${person.change}_by_machine` };
      assert.deepEqual(feedback({ ...record, UserAgent: 'Mozilla/5.0' }), machine);
      const gmail = 'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)';
      assert.deepEqual(feedback({ ...record, UserAgent: gmail }), person);
    }
  });
});
