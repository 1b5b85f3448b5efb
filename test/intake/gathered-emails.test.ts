import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gatherEmails } from '../../src/intake/gathered-emails.ts';
import type { NewEmail } from '../../src/store/emails/emails.ts';
import { setQuota } from '../../src/store/limits/quota.ts';
import { newEmail, organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';

const database = await useDatabase(10);
let statements = 0;
/** Counts the statements. */
const pool = new Proxy(database.pool, {
  get(target, name) {
    const value = Reflect.get(target, name) as unknown;
    if (name === 'query') statements++;
    return typeof value === 'function' ? (value.bind(target) as unknown) : value;
  },
});

describe('single emails that come together', () => {
  const emails = (n: number, fields: Partial<NewEmail> = {}) => Array.from({ length: n }, () => newEmail(fields));
  const stored = async (wanted: readonly NewEmail[]) => {
    const ids = wanted.map(({ id }) => id);
    const { rows } = await database.pool.query<{ id: string }>('SELECT id FROM emails WHERE id = ANY ($1)', [ids]);
    return rows.length;
  };

  test('share statements, and each has its own answer', async () => {
    const caller = { orgId: await organization(database.pool, 'org1.example'), domainIds: null };
    const store = gatherEmails(pool);
    const wanted = emails(60, { from_domain: 'org1.example' });
    statements = 0;
    const answers = await Promise.all(wanted.map((email) => store(caller, email)));
    assert.deepEqual(
      answers.map(({ id }) => id),
      wanted.map(({ id }) => id),
    );
    assert.equal(await stored(wanted), 60);
    assert.equal(statements, 2, 'the first one, and all others');
  });

  test('one that is refused leaves the others alone', async () => {
    const caller = { orgId: await organization(database.pool, 'org2.example'), domainIds: null };
    const store = gatherEmails(pool);
    const wanted = [
      ...emails(3, { from_domain: 'org2.example' }),
      ...emails(1, { from_domain: 'nobody.example' }),
      ...emails(3, { from_domain: 'org2.example' }),
    ];
    statements = 0;
    const answers = await Promise.all(wanted.map((email) => store(caller, email)));
    assert.deepEqual(
      answers.map(({ refusal }) => refusal),
      [null, null, null, 'domain_not_found', null, null, null],
    );
    assert.equal(await stored(wanted), 6);
    assert.equal(statements, 2, 'nothing had to be asked again');
  });

  test('of a key that was used meanwhile only one is stored; the others are not held up', async () => {
    const caller = { orgId: await organization(database.pool, 'org3.example'), domainIds: null };
    const store = gatherEmails(pool);
    const once = { key: 'k', fingerprint: Buffer.alloc(32) };
    const wanted = [
      ...emails(2, { from_domain: 'org3.example' }),
      ...emails(2, { from_domain: 'org3.example', idempotency: once }),
      ...emails(2, { from_domain: 'org3.example' }),
    ];
    const answers = await Promise.allSettled(wanted.map((email) => store(caller, email)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    );
    assert.equal(await stored(wanted), 5);
  });

  test('take what a quota leaves, though it does not reach for all of them', async () => {
    const orgId = await organization(database.pool, 'org4.example');
    await setQuota(database.pool, orgId, 5);
    const store = gatherEmails(pool);
    const wanted = emails(12, { from_domain: 'org4.example' });
    const answers = await Promise.all(wanted.map((email) => store({ orgId, domainIds: null }, email)));
    assert.deepEqual(
      answers.map(({ refusal }) => refusal),
      [...Array<null>(5).fill(null), ...Array<string>(7).fill('quota_exceeded')],
    );
    assert.equal(await stored(wanted), 5);
  });

  test('of two callers do not share, since each has his own domains', async () => {
    const [one, other] = [
      await organization(database.pool, 'org5.example'),
      await organization(database.pool, 'other.example'),
    ];
    const store = gatherEmails(pool);
    const answers = await Promise.all([
      store({ orgId: one, domainIds: null }, newEmail({ from_domain: 'org5.example' })),
      store({ orgId: one, domainIds: [] }, newEmail({ from_domain: 'org5.example' })),
      store({ orgId: other, domainIds: null }, newEmail({ from_domain: 'org5.example' })),
    ]);
    assert.deepEqual(
      answers.map(({ refusal }) => refusal),
      [null, 'insufficient_scope', 'domain_not_found'],
    );
  });
});
