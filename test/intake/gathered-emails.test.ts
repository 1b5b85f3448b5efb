import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gatherEmails } from '../../src/intake/emails.ts';
import type { NewEmail } from '../../src/store/emails/accept.ts';
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

describe('single emails that arrive together', () => {
  const emails = (n: number, fields: Partial<NewEmail> = {}) => Array.from({ length: n }, () => newEmail(fields));
  const stored = async (wanted: readonly NewEmail[]) => {
    const ids = wanted.map(({ id }) => id);
    const { rows } = await database.pool.query<{ id: string }>('SELECT id FROM emails WHERE id = ANY ($1)', [ids]);
    return rows.length;
  };

  test('share statements, and each gets its own result', async () => {
    const caller = { orgId: await organization(database.pool, 'org1.example'), domainIds: null };
    const store = gatherEmails(pool);
    const wanted = emails(60, { from_domain: 'org1.example' });
    statements = 0;
    const answers = await Promise.all(wanted.map((email) => store(caller, email)));
    for (const [i, { id }] of answers.entries()) assert.equal(id, wanted[i]?.id);
    assert.equal(await stored(wanted), 60);
    assert.equal(statements, 2, 'the first one, and all others');
  });

  test('a refused email does not affect the others', async () => {
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

  test('store one of two with the same idempotency key, and all others', async () => {
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

  test('do not share statements between callers with different domains', async () => {
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
