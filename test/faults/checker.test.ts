import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../support/folder.ts';
import { check, type Evidence, sentences } from './checker.ts';
import { readProvider } from './evidence.ts';
import { openLedger, readLedger } from './ledger.ts';

const ACCEPTED = { kind: 'accepted', to: ['a@x.net'], id: 'em_a', due: null, at: 0 } as const;
/** An email that was accepted and sent once, with its webhook. */
const GOOD: Evidence = {
  sender: [ACCEPTED],
  api: [{ id: 'em_a', batch_id: null, to: 'a@x.net', status: 'delivered' }],
  provider: new Map([['a@x.net', [1_000]]]),
  ambiguous: new Map(),
  unresolved: new Set(),
  unattempted: new Set(),
  openWorkflows: [],
  events: [{ id: 'ev_1', type: 'email.sent', message: 'em_a' }],
  webhooks: new Set(['ev_1']),
};
const listed = (status: string, more: object = {}) => [{ id: 'em_a', batch_id: null, to: 'a@x.net', status, ...more }];
const unanswered = { kind: 'unanswered', to: ['a@x.net'], why: 'ECONNRESET' } as const;
const refused = { kind: 'refused', to: ['a@x.net'], why: '429', isExpected: true } as const;

/** The violations of good evidence with this change. */
function violationsOf(change: Partial<Evidence>): string[] {
  return sentences(check({ ...GOOD, ...change }).violations);
}

test('finds no violation in a message that was accepted and sent once, with its webhook', () => {
  const verdict = check(GOOD);
  assert.deepEqual(sentences(verdict.violations), []);
  assert.deepEqual([verdict.accepted, verdict.received, verdict.pending], [1, 1, []]);
});

const CASES: readonly (readonly [string, Partial<Evidence>, string[]])[] = [
  ['the API lost it', { api: [], provider: new Map() }, ['lost: em_a to a@x.net: the API does not know it']],
  ['the provider never got it', { provider: new Map() }, ['lost: em_a: delivered, and not at the provider']],
  ['it is there twice', { provider: new Map([['a@x.net', [1, 2]]]) }, ['twice: em_a: at the provider 2 times']],
  [
    'it is there three times, and one attempt was ambiguous',
    { provider: new Map([['a@x.net', [1, 2, 3]]]), ambiguous: new Map([['em_a', 1]]) },
    ['twice: em_a: at the provider 3 times'],
  ],
  [
    'another message was ambiguous',
    { provider: new Map([['a@x.net', [1, 2]]]), ambiguous: new Map([['em_b', 1]]) },
    ['twice: em_a: at the provider 2 times'],
  ],
  ['a webhook is missing', { webhooks: new Set() }, ['missingWebhooks: em_a: email.sent ev_1']],
  ['it failed', { api: listed('failed'), provider: new Map() }, ['failed: em_a: at the provider 0 times']],
  [
    'it was sent although it is canceled',
    { api: listed('canceled') },
    ['contradicted: em_a: canceled, and at the provider'],
  ],
  [
    'it was sent although the API had reported it as canceled',
    { sender: [ACCEPTED, { kind: 'canceled', to: ['a@x.net'] }] },
    ['contradicted: em_a: delivered, though the API reported it as canceled'],
  ],
  [
    'it was sent early',
    { sender: [{ ...ACCEPTED, due: '1970-01-01T00:00:02.000Z' }] },
    ['early: em_a: before its time'],
  ],
  ['it was refused and is there', { sender: [refused] }, ['contradicted: em_a: stored, though refused: 429']],
  [
    'it was never stored and is at the provider',
    { sender: [refused], api: [], events: [] },
    ['contradicted: to a@x.net: sent, though it was not accepted: 429'],
  ],
  [
    'one key made two emails',
    { api: [...listed('delivered'), ...listed('delivered', { id: 'em_b' })] },
    ['contradicted: to a@x.net: stored 2 times for one request'],
  ],
  ['it has another id', { api: listed('delivered', { id: 'em_b' }) }, ['contradicted: em_b: accepted as em_a']],
  [
    'half of a batch is stored',
    { sender: [{ ...unanswered, to: ['a@x.net', 'b@x.net'] }] },
    ['contradicted: 1 of 2 members of a batch exist: ECONNRESET'],
  ],
  [
    'the API refuses a valid request',
    {
      sender: [
        ACCEPTED,
        { kind: 'refused', to: ['b@x.net'], why: '422 to: must have 1 to 50 items', isExpected: false },
      ],
    },
    ['refused: 422 to: must have 1 to 50 items'],
  ],
  [
    'it failed without an attempt',
    { api: listed('failed'), provider: new Map(), unattempted: new Set(['em_a']), unresolved: new Set(['em_a']) },
    ['unattempted: em_a'],
  ],
  ['a workflow is open', { openWorkflows: ['grp_1'] }, ['open: grp_1']],
  ['the sender has no record of it', { sender: [] }, ['contradicted: em_a: unknown to the sender']],
];
for (const [what, change, sentence] of CASES)
  test(`finds a violation when ${what}`, () => assert.deepEqual(violationsOf(change), sentence));

test('duplicates are explained by as many ambiguous attempts', () => {
  const verdict = check({ ...GOOD, provider: new Map([['a@x.net', [1, 2]]]), ambiguous: new Map([['em_a', 1]]) });
  assert.deepEqual([sentences(verdict.violations), verdict.explained], [[], 1]);
});

test('a failure is explained by an ambiguous attempt without a repeat left', () => {
  const verdict = check({ ...GOOD, api: listed('failed'), unresolved: new Set(['em_a']) });
  assert.deepEqual([sentences(verdict.violations), verdict.unresolved], [[], 1]);
  assert.deepEqual(violationsOf({ api: listed('failed'), unresolved: new Set(['em_b']) }), [
    'failed: em_a: at the provider 1 times',
  ]);
});

test('a request without an answer may have been accepted or not, but what is stored must be sent', () => {
  assert.deepEqual(violationsOf({ sender: [unanswered] }), []);
  assert.deepEqual(violationsOf({ sender: [unanswered], api: [], provider: new Map(), events: [] }), []);
  assert.deepEqual(violationsOf({ sender: [unanswered], provider: new Map() }), [
    'lost: em_a: delivered, and not at the provider',
  ]);
});

test('a message that has not ended is pending', () => {
  for (const status of ['queued', 'scheduled']) {
    assert.deepEqual(check({ ...GOOD, api: listed(status), provider: new Map() }).pending, [`em_a: ${status}`]);
  }
});

test('ledgers contain all entries, and the ledger of the provider is read from the last position', async (t) => {
  const folder = await temporaryFolder(t);
  const ledger = await openLedger<number>(join(folder, 'ledger'));
  await Promise.all([1, 2, 3].map((n) => ledger.write(n)));
  assert.deepEqual(readLedger(join(folder, 'ledger')), [1, 2, 3]);
  await ledger.close();
  await rm(join(folder, 'ledger'));

  const line = (to: string, at: number) => `${JSON.stringify({ recipients: [to], received_at: at })}\t{}\n`;
  const provider = readProvider(folder);
  await writeFile(join(folder, '1'), `${line('a', 1)}${line('b', 2)}${line('a', 3).slice(0, 9)}`);
  assert.deepEqual(provider.read(), new Map(Object.entries({ a: [1], b: [2] })));
  await writeFile(join(folder, '1'), `${line('a', 1)}${line('b', 2)}${line('a', 3)}`);
  await writeFile(join(folder, '2'), line('c', 4));
  assert.deepEqual(provider.read(), new Map(Object.entries({ a: [1, 3], b: [2], c: [4] })));
});
