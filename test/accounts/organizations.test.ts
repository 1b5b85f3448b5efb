import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { ServiceError } from '../../src/domain/errors.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { registerDomainForOperator } from '../../src/accounts/domains.ts';
import { issueKeyForOperator, revokeKeyForOperator, parseApiKey } from '../../src/accounts/keys.ts';
import { listOrganizations } from '../../src/store/accounts/organizations.ts';
import { findKey } from '../../src/store/accounts/keys.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();

const ABSENT = `org_${'0'.repeat(26)}`;
const organization = async (name = 'An organization') => (await createOrganization(pool, name)).id;

/** Expects this error, with a message that starts with its param. */
function refuses(work: Promise<unknown>, code: string, message: string, param?: string): Promise<void> {
  return assert.rejects(work, (error) => {
    assert.ok(error instanceof ServiceError, String(error));
    assert.deepEqual([error.code, error.message, error.param], [code, param ? `${param}: ${message}` : message, param]);
    return true;
  });
}

describe('an organization', () => {
  it('is created with a full_access key, which is returned once and stored as SHA-256', async () => {
    const { id, name, api_key: key } = await createOrganization(pool, '  Ada & Söhne 😀 ');
    assert.match(id, /^org_[0-9a-z]{26}$/);
    assert.equal(name, 'Ada & Söhne 😀');
    assert.match(key, /^sw_live_[0-9a-z]{26}_[0-9a-f]{64}$/);
    const parts = parseApiKey(key);
    const stored = await findKey(pool, parts?.id ?? '');
    const { preset, org_id: orgId, domain_ids: domains, sha256 } = stored ?? {};
    assert.deepEqual([preset, orgId, domains], ['full_access', id, null]);
    const digest = createHash('sha256').update(parts?.secret ?? '');
    assert.deepEqual(sha256, digest.digest());
    const { rows } = await pool.query<{ row: string }>('SELECT api_keys::text AS row FROM api_keys');
    assert.ok(rows.every(({ row }) => !row.includes(parts?.secret ?? '')));
  });

  it('is listed by the time of its creation', async () => {
    const ids = [await organization(), await organization()];
    const listed = await listOrganizations(pool);
    assert.deepEqual(listed.map(({ id }) => id).slice(-2), ids);
    assert.deepEqual(Object.keys(listed[0] as object), ['id', 'name', 'created_at', 'suspended_at']);
    assert.match(String(listed[0]?.created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('is refused with a name that is empty, has control characters or is not well-formed', async () => {
    const { length } = await listOrganizations(pool);
    const hasControls = 'must not contain control characters or line breaks';
    for (const [name, message] of [
      ['', 'must not be empty'],
      [' \t\n ', 'must not be empty'],
      ['a\nb', hasControls],
      ['a\0b', hasControls],
      ['a\u2028b', hasControls],
      ['\uD800', 'must be well-formed Unicode'],
    ] as const)
      await refuses(createOrganization(pool, name), 'validation_error', message, 'name');
    assert.equal((await listOrganizations(pool)).length, length);
  });
});

describe('a domain', () => {
  it('is registered by its A-label, lower-case', async () => {
    const orgId = await organization();
    for (const [given, name] of [
      ['Mail.Example.COM', 'mail.example.com'],
      [' trimmed.example ', 'trimmed.example'],
      ['bücher.example', 'xn--bcher-kva.example'],
    ] as const) {
      const domain = await registerDomainForOperator(pool, orgId, given, false);
      const { id, created_at: createdAt, next_check_at: next, ...rest } = domain;
      assert.match(id, /^dm_[0-9a-z]{26}$/);
      assert.match(createdAt, /Z$/);
      assert.equal(next, createdAt, 'its check is due');
      const unchecked = { trusted: false, verified_at: null, last_checked_at: null };
      const untracked = { open_tracking: false, click_tracking: false };
      assert.deepEqual(rest, { org_id: orgId, name, status: 'pending', ...unchecked, ...untracked });
    }
  });

  it('may be registered as trusted and verified', async () => {
    const { status, verified_at: verifiedAt } = await registerDomainForOperator(
      pool,
      await organization(),
      'trust.example',
      true,
    );
    assert.equal(status, 'verified');
    assert.match(String(verifiedAt), /Z$/);
  });

  it('is refused with an invalid name', async () => {
    const orgId = await organization();
    for (const name of [
      '',
      'localhost',
      'a..example',
      '127.0.0.1',
      'http://localhost/',
      'ftp://a.example',
      '*.example',
      'xn--.example',
    ])
      await refuses(
        registerDomainForOperator(pool, orgId, name, true),
        'validation_error',
        `"${name}" is not a domain name`,
        'name',
      );
  });

  it('needs an organization that exists', async () => {
    const message = `there is no organization ${ABSENT}`;
    await refuses(registerDomainForOperator(pool, ABSENT, 'a.example', false), 'not_found', message, 'organization');
  });

  it('is registered once by an organization in any spelling', async () => {
    const orgId = await organization();
    await registerDomainForOperator(pool, orgId, 'twice.example', false);
    await registerDomainForOperator(pool, orgId, 'zwölf.example', false);
    for (const [name, verified] of [
      ['twice.example', false],
      ['twice.example', true],
      ['TWICE.example', false],
      ['xn--zwlf-6qa.example', false],
    ] as const) {
      const message = `the domain ${name} is registered already`;
      await refuses(registerDomainForOperator(pool, orgId, name, verified), 'conflict', message, 'name');
    }
  });

  it('is refused when another organization has verified it', async () => {
    await registerDomainForOperator(pool, await organization(), 'held.example', true);
    for (const verified of [true, false]) {
      const work = registerDomainForOperator(pool, await organization(), 'HELD.example', verified);
      await refuses(work, 'conflict', 'the domain HELD.example is registered already', 'name');
    }
  });

  it('may be registered when another organization has not verified it', async () => {
    await registerDomainForOperator(pool, await organization(), 'wanted.example', false);
    const { status } = await registerDomainForOperator(pool, await organization(), 'wanted.example', true);
    assert.equal(status, 'verified');
  });

  it('is given to one of several concurrent verified registrations', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => organization()));
    const claims = await Promise.allSettled(ids.map((id) => registerDomainForOperator(pool, id, 'race.example', true)));
    assert.equal(claims.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const claim of claims) {
      if (claim.status === 'rejected') assert.equal((claim.reason as ServiceError).code, 'conflict');
    }
  });
});

describe('a key', () => {
  it('has a preset and the ids of its domains', async () => {
    const orgId = await organization();
    const domain = await registerDomainForOperator(pool, orgId, 'ключ.example', true);
    for (const preset of ['full_access', 'sending_access', 'read_only'] as const) {
      const { id, api_key: key } = await issueKeyForOperator(pool, orgId, preset, ['КЛЮЧ.example', domain.name]);
      assert.equal(parseApiKey(key)?.id, id);
      const stored = await findKey(pool, id);
      assert.deepEqual([stored?.preset, stored?.domain_ids], [preset, [domain.id]]);
    }
    const { id } = await issueKeyForOperator(pool, orgId, 'full_access', []);
    assert.equal((await findKey(pool, id))?.domain_ids, null);
  });

  it('is refused without an existing organization or with domains of another one', async () => {
    const orgId = await organization();
    await registerDomainForOperator(pool, await organization(), 'another.example', true);
    const absent = issueKeyForOperator(pool, ABSENT, 'full_access', []);
    await refuses(absent, 'not_found', `there is no organization ${ABSENT}`, 'organization');
    const another = issueKeyForOperator(pool, orgId, 'full_access', ['another.example']);
    await refuses(another, 'domain_not_found', 'the organization has no domain another.example', 'domain');
    const nonsense = issueKeyForOperator(pool, orgId, 'full_access', ['nonsense']);
    await refuses(nonsense, 'validation_error', '"nonsense" is not a domain name', 'domain');
  });

  it('is revoked by its text or its id, also repeatedly', async () => {
    const orgId = await organization();
    const first = await issueKeyForOperator(pool, orgId, 'full_access', []);
    const second = await issueKeyForOperator(pool, orgId, 'full_access', []);
    for (const [name, { id }] of [
      [first.api_key, first],
      [second.id, second],
      [second.id, second],
    ] as const) {
      assert.deepEqual(await revokeKeyForOperator(pool, name), { id });
      assert.equal(await findKey(pool, id), undefined);
    }
  });

  it('is not found for revocation if it does not exist', async () => {
    for (const name of ['', 'x', `key_${'0'.repeat(26)}`, `sw_live_${'0'.repeat(26)}_${'0'.repeat(64)}`]) {
      await refuses(revokeKeyForOperator(pool, name), 'not_found', 'there is no such key', 'key');
    }
  });

  it('is parsed strictly', () => {
    const id = '01kajc8wz6h3xkq3m1x8e6v5tn';
    const secret = 'ab'.repeat(32);
    assert.deepEqual(parseApiKey(`sw_live_${id}_${secret}`), { id: `key_${id}`, secret });
    for (const text of [
      ...['', `sw_live_${id}`, `${id}_${secret}`, `sw_test_${id}_${secret}`, `sw_live_${id}_${secret}0`],
      ...[`sw_live_${id}0_${secret}`, `sw_live_${id}_${secret}\n`, `sw_live_${id}_${secret.toUpperCase()}`],
    ]) {
      assert.equal(parseApiKey(text), undefined, text);
    }
  });
});
