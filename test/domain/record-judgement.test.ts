import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isMisplaced, judgeFound, judgeMissing } from '../../src/domain/senders/record-judgement.ts';
import type { RecordKind, WantedRecord } from '../../src/domain/senders/sender-domain.ts';

const KEY = 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA'.repeat(9);
const DKIM = `v=DKIM1; k=rsa; p=${KEY}`;
const TOKEN = 'sendwright-verification=4f1c9d0e6b7a4c22a1b3c5d7e9f01234';

const WANTED: Readonly<Record<RecordKind, WantedRecord>> = {
  OWNERSHIP: wanted('OWNERSHIP', 'TXT', '_sendwright.example.com', TOKEN),
  DKIM: wanted('DKIM', 'TXT', 'sw1._domainkey.example.com', DKIM),
  SPF: wanted('SPF', 'TXT', 'example.com', 'v=spf1 include:spf.mtasv.net ~all'),
  RETURN_PATH: wanted('RETURN_PATH', 'CNAME', 'pm-bounces.example.com', 'pm.mtasv.net'),
  DMARC: wanted('DMARC', 'TXT', '_dmarc.example.com', 'v=DMARC1; p=none;'),
};

function wanted(record: RecordKind, type: 'TXT' | 'CNAME', name: string, value: string): WantedRecord {
  return { record, type, name, value, required: false };
}

const TWO = /^there are two/;
const QUOTES = /^the value is written in quotes; enter it without them$/;
const PAIRS: readonly (readonly [RecordKind, readonly string[], 'verified' | 'pending' | 'failed', RegExp?])[] = [
  ['OWNERSHIP', [TOKEN], 'verified'],
  ['OWNERSHIP', ['sendwright-verification=0', TOKEN], 'verified'],
  ['OWNERSHIP', ['google-site-verification=x'], 'pending', /^there are other TXT records/],
  ['OWNERSHIP', [`"${TOKEN}"`], 'failed', QUOTES],
  ['OWNERSHIP', [TOKEN.slice(0, 40)], 'failed', /^the value is cut off after 40 characters$/],
  ['OWNERSHIP', [TOKEN.replace('4f', '5f')], 'failed', /^the value is another one/],
  ['OWNERSHIP', [`${TOKEN}0`], 'failed', /^the value is another one/],

  ['DKIM', [DKIM], 'verified'],
  ['DKIM', [`k=rsa;p=${KEY}`], 'verified'],
  ['DKIM', [`v=DKIM1;k=rsa;p=${KEY.slice(0, 200)} \t${KEY.slice(200)}; t=s`], 'verified'],
  [
    'DKIM',
    [DKIM.slice(0, 255)],
    'failed',
    /^the value is cut off at 255 characters; enter the whole value, in several parts of up to 255 characters if necessary$/,
  ],
  ['DKIM', [DKIM.replace('MIIB', 'MIIC')], 'failed', /^the key is another one; replace the value$/],
  ['DKIM', [`${DKIM}AAAA`], 'failed', /^the key is another one/],
  ['DKIM', ['v=DKIM1; k=rsa; p='], 'failed', /^the key is empty, which revokes it/],
  ['DKIM', [`"${DKIM}"`], 'failed', QUOTES],
  ['DKIM', [`${DKIM.slice(0, 200)}" "${DKIM.slice(200)}`], 'failed', /^the value contains quotes between its parts/],
  ['DKIM', [DKIM, 'v=DKIM1; p=AAAA'], 'failed', TWO],
  ['DKIM', ['hello'], 'pending', /^there are other TXT records/],

  ['SPF', ['v=spf1 mx ~all', 'google-site-verification=x'], 'verified'],
  ['SPF', ['v=spf10 mx ~all', 'v=spf2.0/pra'], 'pending', /^there is no SPF record/],
  [
    'SPF',
    ['v=spf1 mx ~all', 'v=spf1 -all'],
    'failed',
    /^there are two SPF records, and receivers ignore both; combine them into one$/,
  ],
  ['SPF', ['v=spf1 mx +all'], 'failed', /^it ends in \+all/],

  ['RETURN_PATH', ['pm.mtasv.net'], 'verified'],
  ['RETURN_PATH', ['PM.mtasv.net.'], 'verified'],
  ['RETURN_PATH', ['x\0.example.org'], 'failed', /^it points to x�\.example\.org; /],
  ['RETURN_PATH', ['x.example.org'], 'failed', /^it points to x\.example\.org; it must point to pm\.mtasv\.net$/],

  ['DMARC', ['v=DMARC1; p=none;'], 'verified'],
  ['DMARC', ['v=DMARC1;p=REJECT;rua=mailto:a@example.com'], 'verified'],
  ['DMARC', ['v=DMARC1'], 'failed', /^it names no policy/],
  ['DMARC', ['v=DMARC1; p=none', 'v=DMARC1; p=reject'], 'failed', TWO],
  ['DMARC', ['hello'], 'pending', /^there is no DMARC record/],
];

describe('the answer of DNS for the name of a record', () => {
  for (const [kind, values, status, error] of PAIRS) {
    test(`${kind} ${JSON.stringify(values).slice(0, 60)} is ${status}`, () => {
      const judged = judgeFound(WANTED[kind], values);
      assert.equal(judged.status, status, String(judged.error));
      if (error) assert.match(String(judged.error), error);
      else assert.equal(judged.error, null);
    });
  }

  test('is shown whole; of a domain’s many TXT records, only those that are about SPF', () => {
    assert.deepEqual(judgeFound(WANTED.DKIM, [DKIM]).found, [DKIM]);
    assert.deepEqual(judgeFound(WANTED.SPF, ['a', 'v=spf1 -all', 'b']).found, ['v=spf1 -all']);
    const hostile = judgeFound(WANTED.OWNERSHIP, [`a\0b\x1B[2Jc`, ...Array<string>(50).fill('x'.repeat(60_000))]);
    assert.equal(hostile.found?.[0], 'a�b�[2Jc');
    assert.equal(hostile.found.length, 20);
    const emoji = judgeFound(WANTED.OWNERSHIP, ['x' + '😀'.repeat(3_000)]).found?.[0] ?? '';
    assert.ok(emoji.endsWith('😀') && emoji.isWellFormed(), 'cut between characters');
    assert.ok(JSON.stringify(hostile).length < 25_000, 'and no more of it than fits a page');
  });

  test('what Postmark must see too is not right before it has', () => {
    for (const kind of ['DKIM', 'RETURN_PATH'] as const) {
      const unseen = judgeFound({ ...WANTED[kind], seenByProvider: false }, [WANTED[kind].value]);
      assert.deepEqual(
        [unseen.status, unseen.error],
        ['pending', 'the record exists, but Postmark has not found it yet'],
      );
      assert.equal(judgeFound({ ...WANTED[kind], seenByProvider: true }, [WANTED[kind].value]).status, 'verified');
    }
  });
});

describe('a missing record', () => {
  for (const kind of Object.keys(WANTED) as RecordKind[]) {
    test(`${kind} waits`, () => {
      const { found, status, error } = judgeMissing(WANTED[kind], null);
      assert.deepEqual([found, status], [[], 'pending']);
      assert.match(String(error), /^there is no /);
    });
  }

  test('but at its name with the domain written twice', () => {
    const { status, error } = judgeMissing(WANTED.OWNERSHIP, 'example.com');
    assert.equal(status, 'failed');
    assert.equal(
      error,
      'it was found at _sendwright.example.com.example.com: the DNS provider added the domain itself; enter only _sendwright as the name',
    );
    const below = { ...WANTED.OWNERSHIP, name: '_sendwright.mail.example.com' };
    assert.match(String(judgeMissing(below, 'example.com').error), /enter only _sendwright\.mail as the name$/);
  });

  test('is misplaced at another name if its values are the wanted ones, also before Postmark has seen them', () => {
    for (const kind of Object.keys(WANTED) as RecordKind[]) {
      const unseen = { ...WANTED[kind], seenByProvider: false };
      assert.ok(isMisplaced(unseen, [WANTED[kind].value]), kind);
      assert.ok(!isMisplaced(unseen, ['v=spf1 -all']), kind);
    }
    assert.ok(!isMisplaced(WANTED.RETURN_PATH, ['parking.example.net']));
  });
});
