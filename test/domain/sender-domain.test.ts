import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Finding,
  findingKey,
  nextStep,
  organizationalDomain,
  type Progress,
  senderDomainProblem,
  type Verdict,
  verdictOf,
  type WantedRecord,
} from '../../src/domain/senders/sender-domain.ts';
import { showRecords, wantedRecords } from '../../src/domain/senders/sender-records.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const PENDING: Progress = { status: 'pending', trusted: false, tries: 0, misses: 0, waitedMs: 0 };
const VERIFIED: Progress = { ...PENDING, status: 'verified' };

describe('a domain that must prove itself', () => {
  test('is looked at again after a minute, doubling to six hours, until 72 hours are over', () => {
    let progress = PENDING;
    const waits: number[] = [];
    while (progress.status === 'pending') {
      const { nextInMs, ...step } = nextStep(progress, 'missing', true);
      if (typeof nextInMs === 'number') waits.push(nextInMs / MINUTE);
      progress = { ...progress, ...step, waitedMs: progress.waitedMs + (nextInMs ?? 0) };
    }
    assert.deepEqual(waits.slice(0, 11), [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360]);
    assert.equal(
      waits.reduce((sum, wait) => sum + wait, 0),
      72 * 60,
    );
    assert.deepEqual([progress.status, progress.waitedMs], ['failed', 72 * HOUR]);
  });

  test('is verified when all records exist, immediately or in time, and then checked daily', () => {
    for (const isBackground of [true, false]) {
      const step = nextStep({ ...PENDING, tries: 7, waitedMs: 100 * HOUR }, 'complete', isBackground);
      assert.deepEqual(step, { status: 'verified', tries: 0, misses: 0, nextInMs: 24 * HOUR });
    }
  });

  test('does not fail while DNS cannot be asked', () => {
    const late = { ...PENDING, tries: 20, waitedMs: 80 * HOUR };
    assert.deepEqual(nextStep(late, 'unsure', true), { status: 'pending', tries: 21, misses: 0, nextInMs: HOUR });
    assert.equal(nextStep(late, 'missing', true).status, 'failed');
  });

  test('does not fail, nor wait longer, for being asked about by hand', () => {
    const late = { ...PENDING, tries: 20, waitedMs: 80 * HOUR };
    for (const verdict of ['missing', 'lost', 'unsure'] as const) {
      const step = nextStep(late, verdict, false);
      assert.deepEqual(step, { status: 'pending', tries: 20, misses: 0, nextInMs: undefined });
    }
  });
});

describe('a verified domain', () => {
  test('fails after three daily checks in a row that certainly missed what was there', () => {
    let progress = VERIFIED;
    const verdicts = 'lost lost complete lost unsure lost missing lost lost lost'.split(' ') as Verdict[];
    const seen = verdicts.map((verdict) => {
      const { nextInMs, ...step } = nextStep(progress, verdict, true);
      progress = { ...progress, ...step };
      return `${step.misses} ${step.status} ${String(nextInMs && nextInMs / HOUR)}`;
    });
    assert.deepEqual(seen, [
      ...['1 verified 24', '2 verified 24', '0 verified 24', '1 verified 24', '1 verified 1', '2 verified 24'],
      ...['0 verified 24', '1 verified 24', '2 verified 24', '3 failed null'],
    ]);
  });

  test('never fails for being asked about by hand, and keeps its time', () => {
    for (const verdict of ['complete', 'missing', 'lost', 'unsure'] as const) {
      const { status, nextInMs } = nextStep({ ...VERIFIED, misses: 2 }, verdict, false);
      assert.deepEqual([status, nextInMs], ['verified', undefined]);
    }
  });

  test('stays verified if it is trusted; a failed one is checked only on request', () => {
    for (const verdict of ['complete', 'missing', 'lost', 'unsure'] as const) {
      for (const isBackground of [true, false]) {
        const trusted = nextStep({ ...VERIFIED, trusted: true, misses: 5 }, verdict, isBackground);
        assert.deepEqual([trusted.status, trusted.nextInMs], ['verified', null]);
        const failed = nextStep({ ...PENDING, status: 'failed' }, verdict, isBackground);
        assert.deepEqual([failed.status, failed.nextInMs], ['failed', null]);
      }
    }
  });
});

describe('what a check came to', () => {
  const record = (name: string, required: boolean): WantedRecord => {
    return { record: 'DKIM', type: 'TXT', name, value: 'x', required };
  };
  const WANTED = [record('a', true), record('b', true), record('advice', false)];
  const key = (name: string) => findingKey({ record: 'DKIM', name });
  const right: Finding = { found: ['x'], status: 'verified', error: null, was_right: true };
  const lost: Finding = { found: [], status: 'pending', error: 'gone', was_right: true };
  const missing: Finding = { ...lost, was_right: false };

  for (const [what, a, b, certain, verdict] of [
    ['all is right', right, right, ['a', 'b'], 'complete'],
    ['one is missing', right, missing, ['a', 'b'], 'missing'],
    ['one is gone that was there', right, lost, ['a', 'b'], 'lost'],
    ['one could not be asked', right, right, ['a'], 'unsure'],
    ['none could be asked', lost, missing, [], 'unsure'],
  ] as const) {
    test(`${what}: ${verdict}`, () => {
      const findings = { [key('a')]: a, [key('b')]: b, [key('advice')]: missing };
      assert.equal(verdictOf(WANTED, findings, new Set([...certain.map(key), key('advice')])), verdict);
    });
  }
});

describe('names', () => {
  test('that are public suffixes are refused', () => {
    for (const name of ['co.uk', 'com.au', 'kawasaki.jp', 'foo.ck']) {
      assert.match(String(senderDomainProblem(name)), /is a public suffix/, name);
    }
    // The last are a company's, an exception of a wildcard, and below a top-level domain that no list knows.
    for (const name of ['example.co.uk', 'mail.example.com', 'github.io', 'www.ck', 'demo.sendwright.example']) {
      assert.equal(senderDomainProblem(name), undefined, name);
    }
  });

  test('belong to an organization by the part that a registry gave away', () => {
    for (const [name, organization] of [
      ['example.com', 'example.com'],
      ['a.b.example.co.uk', 'example.co.uk'],
      ['acme.uk.com', 'acme.uk.com'],
      ['mail.acme.it.com', 'acme.it.com'],
      ['uk.com', 'uk.com'],
      ['demo.sendwright.example', 'sendwright.example'],
    ] as const) {
      assert.equal(organizationalDomain(name), organization);
    }
  });
});

describe('the records of a domain', () => {
  const source = { name: 'mail.example.com', token: 't', dkim_public: 'KEY', provider: null };
  const postmark = {
    dkim: { name: '2026pm._domainkey.mail.example.com', value: 'k=rsa; p=PM', seen: false },
    return_path: { name: 'pm-bounces.mail.example.com', value: 'pm.mtasv.net', seen: true },
  };
  const lines = (...given: Parameters<typeof wantedRecords>) =>
    wantedRecords(...given).map(({ record, type, name, value, required }) => [record, type, name, value, required]);
  const ownership = ['OWNERSHIP', 'TXT', '_sendwright.mail.example.com', 'sendwright-verification=t', true];
  const dmarc = ['DMARC', 'TXT', '_dmarc.example.com', 'v=DMARC1; p=none;', false];
  const spf = (value: string) => ['SPF', 'TXT', 'mail.example.com', value, false];

  test('by SMTP: our own key', () => {
    assert.deepEqual(lines(source, { postmark: false, smtpHost: 'smtp.example.net' }), [
      ownership,
      ['DKIM', 'TXT', 'sw1._domainkey.mail.example.com', 'v=DKIM1; k=rsa; p=KEY', true],
      spf('v=spf1 a:smtp.example.net ~all'),
      dmarc,
    ]);
  });

  test('by Postmark: its key and return path', () => {
    const given = { ...source, dkim_public: null, provider: postmark };
    assert.deepEqual(lines(given, { postmark: true, smtpHost: null }), [
      ownership,
      ['DKIM', 'TXT', postmark.dkim.name, postmark.dkim.value, true],
      ['RETURN_PATH', 'CNAME', postmark.return_path.name, postmark.return_path.value, false],
      spf('v=spf1 include:spf.mtasv.net ~all'),
      dmarc,
    ]);
  });

  test('by both: both keys', () => {
    const kinds = lines({ ...source, provider: postmark }, { postmark: true, smtpHost: '192.0.2.7' });
    assert.deepEqual(
      kinds.map(([kind]) => kind),
      ['OWNERSHIP', 'DKIM', 'DKIM', 'RETURN_PATH', 'SPF', 'DMARC'],
    );
    assert.deepEqual(kinds[4], spf('v=spf1 ip4:192.0.2.7 include:spf.mtasv.net ~all'));
  });

  test('by none that we manage: ownership alone is required', () => {
    assert.deepEqual(lines({ ...source, dkim_public: null }, { postmark: false, smtpHost: null }), [
      ownership,
      spf('v=spf1 ~all'),
      dmarc,
    ]);
  });

  test('are shown with what was found of each', () => {
    const wanted = wantedRecords(source, { postmark: false, smtpHost: null });
    const found: Finding = { found: ['x'], status: 'failed', error: 'no', was_right: true };
    const [first, second] = showRecords(wanted, { 'OWNERSHIP _sendwright.mail.example.com': found });
    assert.deepEqual(first, {
      ...{ record: 'OWNERSHIP', type: 'TXT', name: ownership[2], value: ownership[3], priority: null, ttl: 3_600 },
      ...{ required: true, status: 'failed', found: ['x'], error: 'no' },
    });
    assert.deepEqual([second?.status, second?.found, second?.error], ['pending', null, null]);
  });
});
