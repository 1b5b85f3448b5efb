import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { EMAIL_STATUSES, type EmailStatus } from '../../src/domain/email/email.ts';
import { type EmailChange, nextStatus, type Transition, TRANSITIONS } from '../../src/domain/email/states.ts';

/**
 * The contract for every pair, written by hand: `>` the change moves the email, `n` it is only recorded in the timeline,
 * `.` it has no effect. Rows are the current statuses; the last line is the status after a change.
 *
 * Only a scheduled email can be moved or called back; suppression, rejection and failure are decided while it is queued;
 * what the provider reports ranks sent < delayed < delivered < opened < clicked < bounced < complained and never lowers
 * the status. A report may arrive before our own record of the hand-over (queued), or after an email was given up
 * whose sending had no certain end (failed). To unsubscribe changes no status: an email may have other recipients.
 * Neither does an open or click that a program caused, nor the delay or failure of one recipient among others.
 */
const EXPECTED = `
                 rescheduled canceled claimed suppressed rejected failed sent delivery_delayed delivered opened clicked bounced complained unsubscribed delivery_delayed_for_one failed_for_one opened_by_machine clicked_by_machine
queued                .         .        .        >         >        >     >          >            >        >       >       >        >          n             n                 n            n                 n
scheduled             >         >        >        .         .        .     .          .            .        .       .       .        .          .             .                 .            .                 .
sent                  .         .        .        .         .        .     n          >            >        >       >       >        >          n             n                 n            n                 n
delivery_delayed      .         .        .        .         .        .     n          n            >        >       >       >        >          n             n                 n            n                 n
delivered             .         .        .        .         .        .     n          n            n        >       >       >        >          n             n                 n            n                 n
opened                .         .        .        .         .        .     n          n            n        n       >       >        >          n             n                 n            n                 n
clicked               .         .        .        .         .        .     n          n            n        n       n       >        >          n             n                 n            n                 n
bounced               .         .        .        .         .        .     n          n            n        n       n       n        >          n             n                 n            n                 n
complained            .         .        .        .         .        .     n          n            n        n       n       n        n          n             n                 n            n                 n
suppressed            .         .        .        .         .        .     .          .            .        .       .       .        .          .             .                 .            .                 .
canceled              .         .        .        .         .        .     .          .            .        .       .       .        .          .             .                 .            .                 .
rejected              .         .        .        .         .        .     .          .            .        .       .       .        .          .             .                 .            .                 .
failed                .         .        .        .         .        .     >          >            >        >       >       >        >          n             n                 n            n                 n
leads to          scheduled canceled  queued suppressed rejected failed sent delivery_delayed delivered opened clicked bounced complained - - - - -
`;

const [head = [], ...lines] = EXPECTED.trim()
  .split('\n')
  .map((line) => line.replace('leads to', 'leads-to').trim().split(/\s+/));
const statusesAfter = (lines.pop() ?? []).slice(1);
const changes = head as EmailChange[];

describe('the states of an email', () => {
  it('are all in the table, and so are the changes', () => {
    assert.deepEqual(
      lines.map(([status]) => status),
      [...EMAIL_STATUSES],
    );
    assert.deepEqual(changes, Object.keys(TRANSITIONS));
    assert.equal(statusesAfter.length, changes.length);
  });

  for (const [status, ...cells] of lines as [EmailStatus, ...string[]][]) {
    for (const [column, change] of changes.entries()) {
      const cell = cells[column];
      const to = cell === '>' ? statusesAfter[column] : status;
      it(`${status}, ${change}: ${cell === '>' ? `becomes ${String(to)}` : cell === 'n' ? 'is noted' : 'nothing'}`, () => {
        const transition: Transition = TRANSITIONS[change];
        assert.ok(cell === '>' || cell === 'n' || cell === '.');
        assert.equal(transition.from.includes(status), cell === '>');
        assert.equal(transition.recordOnly.includes(status), cell === 'n');
        assert.equal(nextStatus(status, change), to);
      });
    }
  }

  it('record every change but the claim in the timeline, by its own name', () => {
    for (const [change, { event }] of Object.entries<Transition>(TRANSITIONS))
      assert.equal(event, change === 'claimed' ? null : `email.${change.replace(/_(by_machine|for_one)$/, '')}`);
  });
});

describe('what a provider reports', () => {
  const REPORTS = ['sent', 'delivery_delayed', 'delivered', 'opened', 'clicked', 'bounced', 'complained'] as const;
  const reports = fc.array(fc.constantFrom(...REPORTS), { minLength: 1, maxLength: 20 });
  const rank = (status: EmailStatus) => 1 + (REPORTS as readonly EmailStatus[]).indexOf(status);

  it('leaves the highest of all reports, in any order and however often they come', () => {
    fc.assert(
      fc.property(reports, fc.constantFrom('queued', 'failed', 'sent'), (order, start) => {
        let status: EmailStatus = start;
        for (const report of order) {
          const after = nextStatus(status, report);
          assert.ok(rank(after) >= rank(status), `${report} lowered ${status} to ${after}`);
          status = after;
        }
        assert.equal(rank(status), Math.max(start === 'sent' ? 1 : 0, ...order.map(rank)));
      }),
      { numRuns: 2_000 },
    );
  });
});
