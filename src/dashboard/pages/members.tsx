import { Type } from 'typebox';
import { invite, withdrawInvitation } from '../../accounts/invitations.ts';
import { removeMember, requireMember, setRole } from '../../accounts/users.ts';
import { type Invitation, listInvitations } from '../../store/accounts/invitations.ts';
import { listMembers, type Member, type Role } from '../../store/accounts/users.ts';
import { act, buttonAction } from '../act.ts';
import { Copy, Pager, Sub, Table, TimeCell, Section } from '../elements.tsx';
import { BLANK, confirm, field, Form, FormProblem, select } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type Filled, type Html, idOf, page, type PageRow } from '../page.ts';
import { textToPlace } from '../places.ts';
import { cutPage } from '../../store/postgres/page.ts';

const PATH = '/dashboard/members';
const MEMBERS = 50;
const CRUMBS = [{ path: PATH, name: 'Members' }];

const RoleName = Type.Union([Type.Literal('owner'), Type.Literal('member'), Type.Literal('viewer')]);
const ROLE_NAMES: readonly (readonly [Role, string])[] = [
  ['viewer', 'Viewer: sees everything'],
  ['member', 'Member: works with everything'],
  ['owner', 'Owner: decides who is here, too'],
];

const Place = Type.Object({ cursor: Type.Optional(Type.String()) });

const list = page(Place, (context) => membersPage(context, BLANK, context.query.cursor));

const inviteMember = action(Type.Object({ email: Type.String(), role: RoleName }), {
  again: (context, filled) => membersPage(context, filled),
  run: (context, { email, role }) =>
    act(context, {
      action: 'members.invite',
      run: () => invite(context.pool, context.organization.id, email, role, context.deps.limits.organization),
      target: ({ id }) => id,
      detail: (made) => ({ email: made.email, role }),
      next: (made) => <InvitedPage context={context} email={made.email} token={made.token} />,
    }),
});

const changeRole = action(Type.Object({ role: RoleName }), {
  run: async (context, { role }) => {
    const { pool, organization } = context;
    const member = await requireMember(pool, organization.id, idOf(context));
    return act(context, {
      action: 'members.role',
      run: () => setRole(pool, organization.id, member.id, role),
      target: member.id,
      detail: { email: member.email, from: member.role, to: role },
      next: PATH,
      flash: `${member.email} is ${role} now.`,
    });
  },
});

const remove = buttonAction(async (context) => {
  const { pool, organization } = context;
  const member = await requireMember(pool, organization.id, idOf(context));
  return {
    action: 'members.remove',
    run: () => removeMember(pool, organization.id, member.id),
    detail: { email: member.email, role: member.role },
    next: PATH,
    flash: `${member.email} is no longer a member.`,
  };
});

const withdraw = buttonAction((context) => ({
  action: 'members.withdraw',
  run: () => withdrawInvitation(context.pool, context.organization.id, idOf(context)),
  next: PATH,
  flash: 'The invitation was taken back; its link no longer works.',
}));

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['POST', PATH, 'owner', inviteMember],
  ['POST', `${PATH}/:id/role`, 'owner', changeRole],
  ['POST', `${PATH}/:id/remove`, 'owner', remove],
  ['POST', `${PATH}/invitations/:id/withdraw`, 'owner', withdraw],
];

async function membersPage(context: Context, filled: Filled, cursor?: string): Promise<Html> {
  const { pool, organization, role } = context;
  const place = textToPlace(cursor);
  const [found, invitations] = await Promise.all([
    listMembers(pool, organization.id, place, MEMBERS + 1),
    role === 'owner' && place === null ? listInvitations(pool, organization.id) : [],
  ]);
  const { rows: members, next } = cutPage(found, MEMBERS);
  return (
    <Layout context={context} title="Members">
      <Table caption="Members" columns={['Member', 'Role', 'Since', ...(role === 'owner' ? [''] : [])]}>
        {members.map((member) => (
          <MemberRow context={context} member={member} />
        ))}
      </Table>
      <Pager visit={context} next={next} />
      {invitations.length > 0 && <Invitations context={context} invitations={invitations} />}
      {role === 'owner' ? (
        <Section title="Invite a member">
          <Form visit={context} action={PATH} class="card">
            <FormProblem filled={filled} />
            {field(filled, 'email', 'Email', { type: 'email', autocomplete: 'off', required: true })}
            {select(filled, 'role', 'Role', ROLE_NAMES, 'member')}
            <button class="primary">Make an invitation link</button>
          </Form>
        </Section>
      ) : (
        <p class="hint">Owners invite members and change their roles.</p>
      )}
    </Layout>
  );
}

function MemberRow({ context, member }: { context: Context; member: Member }): Html {
  const { id, email, name, role } = member;
  return (
    <tr>
      <th scope="row">
        <span safe>{name || email}</span>
        {id === context.user.id && ' (you)'}
        {name !== '' && <Sub text={email} />}
      </th>
      <td>{role}</td>
      <TimeCell at={member.created_at} />
      {context.role === 'owner' && (
        <td>
          <div class="row">
            <Form visit={context} action={`${PATH}/${id}/role`} class="row">
              <select name="role" aria-label={`Role of ${email}`}>
                {ROLE_NAMES.map(([value]) => (
                  <option value={value} selected={value === role}>
                    {value}
                  </option>
                ))}
              </select>
              <button class="small">Change</button>
            </Form>
            {confirm(context, 'Remove', {
              action: `${PATH}/${id}/remove`,
              id: `remove-${id}`,
              question: `${email} loses access to ${context.organization.name}.`,
              small: true,
            })}
          </div>
        </td>
      )}
    </tr>
  );
}

function Invitations({ context, invitations }: { context: Context; invitations: readonly Invitation[] }): Html {
  return (
    <Section title="Open invitations">
      <Table caption="Open invitations" columns={['Email', 'Role', 'Ends', '']}>
        {invitations.map(({ id, email, role, expires_at: expiresAt }) => (
          <tr>
            <th scope="row" safe>
              {email}
            </th>
            <td>{role}</td>
            <TimeCell at={expiresAt} />
            <td>
              <Form visit={context} action={`${PATH}/invitations/${id}/withdraw`} class="row">
                <button class="small">Take back</button>
              </Form>
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function InvitedPage({ context, email, token }: { context: Context; email: string; token: string }): Html {
  return (
    <Layout context={context} title="Invitation" crumbs={CRUMBS}>
      <section class="card">
        <p>
          Send this link to <strong safe>{email}</strong>. It works once, within 7 days, and is shown only now. A user
          with this address has to sign in to accept.
        </p>
        <Copy value={`${context.baseUrl}/dashboard/invitations/${token}`} label="Copy the link" />
        <p>
          <a href={PATH}>Back to the members</a>
        </p>
      </section>
    </Layout>
  );
}
