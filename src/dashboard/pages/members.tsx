import { Type } from 'typebox';
import { emailInvitation } from '../../intake/account-emails.ts';
import { invite, revokeInvitation } from '../../accounts/invitations.ts';
import { organizationSuspended } from '../../accounts/suspension.ts';
import { removeMember, requireMember, setRole } from '../../accounts/users.ts';
import { type Invitation, listInvitations } from '../../store/accounts/invitations.ts';
import { listMembers, type Member, type Role, ROLES } from '../../store/accounts/users.ts';
import { ServiceError } from '../../domain/errors.ts';
import { act, buttonAction } from '../act.ts';
import { Copy, Pager, Sub, Table, TimeCell, Section } from '../elements.tsx';
import { BLANK, confirm, field, Form, FormProblem, select } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, idOf, page, type PageRow, Redirect } from '../page.ts';
import { parseCursor, ROWS_PER_PAGE } from '../cursors.ts';
import { ROLE_NAMES, RoleTable } from '../roles.tsx';
import { cutPage } from '../../store/postgres/page.ts';
import { SecuritySection } from './member-security.tsx';

const PATH = '/dashboard/members';
const CRUMBS = [{ path: PATH, name: 'Members' }];

const RoleName = Type.Enum([...ROLES]);
const Query = Type.Object({ cursor: Type.Optional(Type.String()) });

const list = page(Query, (context) => membersPage(context, BLANK, context.query.cursor));

const inviteMember = action(Type.Object({ email: Type.String(), role: RoleName }), {
  renderForm: (context, formState) => membersPage(context, formState),
  run: (context, { email, role }) =>
    act(context, {
      action: 'members.invite',
      run: () => sendInvitation(context, email, role),
      target: ({ id }) => id,
      detail: ({ email: address, isEmailed }) => ({ email: address, role, emailed: isEmailed }),
      next: (invitation) =>
        invitation.isEmailed ? (
          new Redirect(PATH, { flash: `The invitation was emailed to ${invitation.email}.` })
        ) : (
          <InvitedPage context={context} invitation={invitation} />
        ),
    }),
});

interface SentInvitation {
  readonly id: string;
  readonly email: string;
  readonly token: string;
  /** False if the inviter must pass the link on. */
  readonly isEmailed: boolean;
  /** Why it could not be emailed; missing if it was, or if this service sends no emails about accounts. */
  readonly problem?: string;
}

async function sendInvitation(context: Context, email: string, role: Role): Promise<SentInvitation> {
  const { deps, pool, organization, user } = context;
  const invitation = await invite(pool, organization.id, email, role, deps.limits.organization);
  if (deps.accountEmails === null) return { ...invitation, isEmailed: false };
  try {
    // The email is sent in the name of the organization that sends emails about accounts, which may not be suspended.
    if (organization.suspended_at !== null) throw organizationSuspended();
    const named = { ...invitation, org_id: organization.id, organization: organization.name };
    await emailInvitation(deps, deps.accountEmails, named, { token: invitation.token, inviter: user.email });
    return { ...invitation, isEmailed: true };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    deps.log.warn({ err: error, org: organization.id }, 'could not email an invitation');
    return { ...invitation, isEmailed: false, problem: `The invitation could not be emailed: ${error.message}.` };
  }
}

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
  run: () => revokeInvitation(context.pool, context.organization.id, idOf(context)),
  next: PATH,
  flash: 'The invitation was revoked. Its link no longer works.',
}));

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['POST', PATH, 'owner', inviteMember],
  ['POST', `${PATH}/:id/role`, 'owner', changeRole],
  ['POST', `${PATH}/:id/remove`, 'owner', remove],
  ['POST', `${PATH}/invitations/:id/withdraw`, 'owner', withdraw],
];

async function membersPage(context: Context, formState: FormState, cursor?: string): Promise<Html> {
  const { pool, organization, role } = context;
  const after = parseCursor(cursor);
  const [memberRows, invitations] = await Promise.all([
    listMembers(pool, organization.id, after, ROWS_PER_PAGE + 1),
    role === 'owner' && after === null ? listInvitations(pool, organization.id) : [],
  ]);
  const { rows: members, next } = cutPage(memberRows, ROWS_PER_PAGE);
  return (
    <Layout context={context} title="Members">
      <Table layout="cards" caption="Members" columns={['Member', 'Role', 'Since', ...(role === 'owner' ? [''] : [])]}>
        {members.map((member) => (
          <MemberRow context={context} member={member} />
        ))}
      </Table>
      <Pager visit={context} next={next} />
      {invitations.length > 0 && <Invitations context={context} invitations={invitations} />}
      {role === 'owner' ? (
        <Section title="Invite a member">
          <Form visit={context} action={PATH} class="card">
            <FormProblem formState={formState} />
            {field(formState, 'email', 'Email', { type: 'email', autocomplete: 'off', required: true })}
            {select(formState, 'role', 'Role', ROLE_NAMES, 'member')}
            <button class="primary">Invite</button>
          </Form>
        </Section>
      ) : (
        <p class="hint">Owners invite members and change their roles.</p>
      )}
      {role === 'owner' && <SecuritySection context={context} />}
      <RoleTable />
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
      <TimeCell at={member.created_at} short />
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
      <Table layout="cards" caption="Open invitations" columns={['Email', 'Role', 'Expires', '']}>
        {invitations.map(({ id, email, role, expires_at: expiresAt }) => (
          <tr>
            <th scope="row" safe>
              {email}
            </th>
            <td>{role}</td>
            <TimeCell at={expiresAt} short />
            <td>
              <Form visit={context} action={`${PATH}/invitations/${id}/withdraw`} class="row">
                <button class="small">Revoke</button>
              </Form>
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function InvitedPage({ context, invitation }: { context: Context; invitation: SentInvitation }): Html {
  const { email, token, problem } = invitation;
  return (
    <Layout context={context} title="Invitation" crumbs={CRUMBS}>
      {problem !== undefined && (
        <p class="notice bad" role="status" safe>
          {problem}
        </p>
      )}
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
