import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EmailRequest } from '../../src/domain/email/email.ts';
import { ServiceError } from '../../src/domain/errors.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import {
  acceptEmail,
  cancelEmail,
  gatherEmails,
  type IntakeDeps,
  noLimits,
  PLAIN_REQUEST,
  rescheduleEmail,
} from '../../src/intake/emails.ts';
import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { findEmail } from '../../src/store/emails/emails.ts';
import { inMs } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { SECRET_KEY } from '../support/secret-key.ts';

const { pool } = await useDatabase(10);
let relayWakes = 0;
const contents = makeEmailContents(SECRET_KEY);
const deps: IntakeDeps = {
  pool,
  wakeRelay: () => relayWakes++,
  withFiles: async (_upload, store) => store([]),
  storeEmail: gatherEmails(pool),
  contents,
  limits: noLimits(),
};
const orgId = (await createOrganization(pool, 'Intake')).id;
await registerDomainForOperator(pool, orgId, 'a.example', true);

const HOUR = 3_600_000;

function accept(fields: Partial<EmailRequest> = {}) {
  const request: EmailRequest = {
    ...PLAIN_REQUEST,
    from: 'a@a.example',
    to: ['b@example.net'],
    subject: 'Hello',
    text: 'Hi',
    ...fields,
  };
  return acceptEmail(deps, { orgId, domainIds: null }, request);
}

const refused = (code: string, param?: string) => (error: unknown) =>
  error instanceof ServiceError && error.code === code && error.param === param;

describe('all times come from the database', () => {
  for (const [what, ahead] of [
    ['a year ahead', 365 * 24 * HOUR],
    ['a year behind', -365 * 24 * HOUR],
  ] as const) {
    it(`when the clock of this process is ${what}`, async (t) => {
      const soon = inMs(HOUR);
      const past = inMs(-HOUR);
      const far = inMs(31 * 24 * HOUR);
      const now = Date.now();
      t.mock.timers.enable({ apis: ['Date'], now: now + ahead });
      const accepted = await accept({ scheduled_at: soon });
      assert.deepEqual([accepted.status, accepted.scheduled_at], ['scheduled', soon]);
      assert.ok(Math.abs(Date.parse(accepted.created_at) - now) < 60_000);
      for (const bad of [past, far]) {
        await assert.rejects(accept({ scheduled_at: bad }), refused('validation_error', 'scheduled_at'));
        const move = rescheduleEmail(deps, orgId, accepted.id, bad);
        await assert.rejects(move, refused('validation_error', 'scheduled_at'));
      }
      assert.equal((await rescheduleEmail(deps, orgId, accepted.id, soon)).scheduled_at, soon);
      const email = await findEmail(pool, contents, orgId, accepted.id);
      for (const { created_at: at } of email?.events ?? []) assert.ok(Math.abs(Date.parse(at) - now) < 60_000);
    });
  }
});

describe('the relay', () => {
  const outbox = async () => {
    const { rows } = await pool.query<{ count: number }>('SELECT count(*)::int FROM outbox');
    return rows[0]?.count;
  };

  it('is woken once for each change, and not for a refused one', async () => {
    const [wakesBefore, written] = [relayWakes, await outbox()];
    const { id } = await accept({ scheduled_at: inMs(HOUR) });
    await rescheduleEmail(deps, orgId, id, inMs(2 * HOUR));
    await cancelEmail(deps, orgId, id);
    assert.deepEqual([relayWakes, await outbox()], [wakesBefore + 3, (written ?? 0) + 3]);
    await assert.rejects(cancelEmail(deps, orgId, id), refused('not_scheduled'));
    await assert.rejects(rescheduleEmail(deps, orgId, id, inMs(HOUR)), refused('not_scheduled'));
    await assert.rejects(cancelEmail(deps, 'org_x', id), refused('not_found'));
    await assert.rejects(accept({ from: 'a@b.example' }), refused('domain_not_found', 'from'));
    assert.deepEqual([relayWakes, await outbox()], [wakesBefore + 3, (written ?? 0) + 3]);
  });
});

describe('a request that a schema accepts by mistake', () => {
  it('is refused by the intake', async () => {
    for (const from of ['', 'a', 'a@b@a.example', 'a@a.example, b@a.example']) {
      await assert.rejects(accept({ from }), refused('validation_error', 'from'));
    }
    for (const bad of ['', 'tomorrow', '2026-03-01']) {
      await assert.rejects(accept({ scheduled_at: bad }), refused('validation_error', 'scheduled_at'));
    }
    await assert.rejects(accept({ html: '', text: '' }), { code: '23514' });
  });
});
