import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { acceptInvitation, invite } from '../../src/accounts/invitations.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { createUser, removeMember } from '../../src/accounts/users.ts';
import { newId } from '../../src/lib/ids.ts';
import { insertInvitation, listInvitations } from '../../src/store/accounts/invitations.ts';
import { useDatabase } from '../support/database.ts';

const { pool } = await useDatabase();

const organization = async () => (await createOrganization(pool, 'An organization')).id;

describe('an open invitation', () => {
  it('ends when the operator adds the user', async () => {
    const orgId = await organization();
    const { token } = await invite(pool, orgId, 'ada@example.com', 'owner');
    await createUser(pool, orgId, { email: 'grace@example.com' });
    const { id, email } = await createUser(pool, orgId, { email: 'ada@example.com', role: 'viewer' });
    assert.deepEqual(await listInvitations(pool, orgId), []);
    await removeMember(pool, orgId, id);
    const user = { id, email, name: '' };
    await assert.rejects(acceptInvitation(pool, token, user), { code: 'not_found' });
  });

  it('ends when the member of that address is removed', async () => {
    const [orgId, otherId] = [await organization(), await organization()];
    await createUser(pool, orgId, { email: 'owner@example.com' });
    const { id, email } = await createUser(pool, orgId, { email: 'bob@example.com', role: 'viewer' });
    // A version that kept the invitation of a user whom the operator added may have left it.
    const open = (org_id: string) => ({ id: newId('inv'), org_id, email, role: 'owner' as const });
    await insertInvitation(pool, open(orgId), Buffer.alloc(32, 1));
    await insertInvitation(pool, open(otherId), Buffer.alloc(32, 2));
    await removeMember(pool, orgId, id);
    assert.deepEqual(await listInvitations(pool, orgId), []);
    assert.equal((await listInvitations(pool, otherId)).length, 1, 'that of another organization stays');
  });
});
