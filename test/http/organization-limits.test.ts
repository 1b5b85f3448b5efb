import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acceptInvitation, acceptOwnInvitation, invite } from '../../src/accounts/invitations.ts';
import { createUser } from '../../src/accounts/users.ts';
import { UNLIMITED_ORGANIZATION } from '../../src/accounts/organization-limits.ts';
import { REACHABLE } from '../public-fetch/web.ts';
import { assertRefused, type Organization, startService, useService } from './service.ts';

const LIMIT = 3;

const service = await useService({
  organizationLimits: { endpoints: LIMIT, domains: LIMIT, keys: LIMIT, numbers: LIMIT, members: LIMIT },
});

let count = 0;

/** Resources with a limit: `first` of them exist in a new organization, and `name` is in the message. */
const RESOURCES = [
  { path: '/v1/webhooks', json: () => ({ url: `https://${REACHABLE}/hook` }), first: 0, name: 'webhook endpoints' },
  { path: '/v1/domains', json: () => ({ name: `limited${++count}.example.com` }), first: 1, name: 'domains' },
  { path: '/v1/keys', json: () => ({ preset: 'read_only' }), first: 1, name: 'API keys' },
  {
    path: '/v1/chatapp/numbers',
    json: () => ({ number: `+1202555${1_000 + ++count}`, provider: 'twilio', auth_token: 'token' }),
    first: 0,
    name: 'numbers',
  },
];

describe('the limit of an organization', () => {
  for (const { path, json, first, name } of RESOURCES) {
    const create = (by: Organization) => by.call('POST', path, { json: json() });

    it(`POST ${path}: returns 409 beyond it, also to concurrent requests; deleting one allows another`, async () => {
      const [ours, theirs] = [await service.organization(), await service.organization()];
      const answers = await Promise.all(Array.from({ length: 12 }, () => create(ours)));
      const created = answers.filter(({ status }) => status === 201);
      assert.equal(created.length, LIMIT - first);
      const message = `the organization has 3 ${name}, which is its limit`;
      for (const answer of answers) {
        if (!created.includes(answer)) assertRefused(answer, 409, 'limit_exceeded', undefined, message);
      }
      assert.equal((await create(theirs)).status, 201, 'another organization has its own limit');
      const { id } = created[0]?.body as { id: string };
      assert.equal((await ours.call('DELETE', `${path}/${id}`)).status, 204);
      assert.equal((await create(ours)).status, 201);
      assertRefused(await create(ours), 409, 'limit_exceeded');
    });
  }
});

it('POST /v1/webhooks returns 422 for its URL also when the limit is reached', async () => {
  const ours = await service.organization();
  const post = (url: string) => ours.call('POST', '/v1/webhooks', { json: { url } });
  for (let i = 0; i < LIMIT; i++) assert.equal((await post(`https://${REACHABLE}/hook`)).status, 201);
  assertRefused(await post('http://127.0.0.1'), 422, 'validation_error', 'url');
});

describe('members', () => {
  const limits = { ...UNLIMITED_ORGANIZATION, members: LIMIT };
  const isRefused = { code: 'limit_exceeded' };
  const inviteMember = (orgId: string, email: string) => invite(service.pool, orgId, email, 'member', limits);
  const accept = (token: string) =>
    acceptInvitation(service.pool, token, { name: '', password: 'a long password' }, limits);
  const newEmail = () => `user${++count}@example.com`;

  it('count with open invitations; inviting an address again does not count it twice', async () => {
    const { id } = await service.organization();
    await createUser(service.pool, id, { email: newEmail(), role: 'owner' });
    await inviteMember(id, 'first@example.com');
    await inviteMember(id, 'second@example.com');
    await assert.rejects(inviteMember(id, 'third@example.com'), isRefused);
    const { token } = await inviteMember(id, 'second@example.com');
    assert.match((await accept(token)).userId, /^usr_/);
    await assert.rejects(inviteMember(id, 'third@example.com'), isRefused);
  });

  it('are also limited when an invitation is accepted, by a new or an existing user', async () => {
    const { id } = await service.organization();
    const { token } = await inviteMember(id, 'late@example.com');
    for (let i = 0; i < LIMIT; i++) await createUser(service.pool, id, { email: newEmail(), role: 'owner' });
    await assert.rejects(accept(token), isRefused);
    const other = await service.organization();
    const user = { ...(await createUser(service.pool, other.id, { email: newEmail() })), name: '' };
    const { invitation } = await createUser(service.pool, id, { email: user.email });
    await assert.rejects(acceptOwnInvitation(service.pool, user, invitation?.id ?? '', limits), isRefused);
  });
});

it('registrations and checks of domains have a rate limit of their own', async (t) => {
  const limited = await startService({ perSecond: { requests: 10_000, mails: 10_000, domains: 0.001 } });
  t.after(limited.close);
  // A bucket of 0.1 tokens: the first passes, as what costs more than half of a full bucket does, and overdraws it.
  const ours = await limited.organization();
  const register = () => ours.call('POST', '/v1/domains', { json: { name: `rated${++count}.example.com` } });
  const answers = [await register(), await register()];
  assertRefused(answers.find(({ status }) => status === 429) ?? (await register()), 429, 'rate_limit_exceeded');
  const domains = (await ours.call('GET', '/v1/domains')).body as { domains: { id: string }[] };
  const verify = await ours.call('POST', `/v1/domains/${domains.domains[0]?.id}/verify`);
  assertRefused(verify, 429, 'rate_limit_exceeded');
  await ours.sent();
});
