import { Type } from 'typebox';
import { changePassword, removeMember, renameUser } from '../../accounts/users.ts';
import { listInvitationsOf } from '../../store/accounts/invitations.ts';
import { act, buttonAction } from '../act.ts';
import { Facts, Text, Section } from '../elements.tsx';
import { BLANK, confirm, currentPasswordField, field, Form, FormProblem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, page, type PageRow, Redirect } from '../page.ts';
import { oidcSection } from './account-oidc.tsx';
import { sessionsSection } from './account-sessions.tsx';
import { SecondFactorSection } from './second-factor.tsx';

const PATH = '/dashboard/account';

const show = page(Type.Object({}), async (context) => accountPage(context, BLANK, BLANK));

const rename = action(Type.Object({ name: Type.Optional(Type.String()) }), {
  renderForm: (context, formState) => accountPage(context, formState, BLANK),
  run: (context, { name = '' }) =>
    act(context, {
      action: 'account.rename',
      run: () => renameUser(context.pool, context.user.id, name),
      target: context.user.id,
      next: PATH,
      flash: 'Your name was changed.',
    }),
});

const setNewPassword = action(Type.Object({ current: Type.String(), password: Type.String() }), {
  renderForm: (context, formState) => accountPage(context, BLANK, formState),
  run: async (context, input) => {
    await changePassword(context.pool, context.user, input, context.session.token);
    return new Redirect(PATH, { flash: 'Your password was changed; you are signed out everywhere else.' });
  },
});

const leave = buttonAction((context) => ({
  action: 'members.leave',
  run: () => removeMember(context.pool, context.organization.id, context.user.id),
  target: context.user.id,
  detail: { email: context.user.email, role: context.role },
  next: '/dashboard',
}));

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', show],
  ['POST', `${PATH}/name`, 'viewer', rename],
  ['POST', `${PATH}/password`, 'viewer', setNewPassword],
  ['POST', `${PATH}/leave`, 'viewer', leave],
];

async function accountPage(context: Context, name: FormState, password: FormState): Promise<Html> {
  const { user, organization, role } = context;
  const { length: invitations } = await listInvitationsOf(context.pool, user.id);
  const safeOidc = await oidcSection(context);
  const safeSessions = await sessionsSection(context);
  return (
    <Layout context={context} title="Your account">
      <Facts
        facts={[
          ['Email', <Text text={user.email} />],
          ['Role', <Text text={`${role} of ${organization.name}`} />],
          [
            'Time zone',
            <a href="/dashboard/account/time-zone" safe>
              {context.session.timeZone ?? "Your browser's"}
            </a>,
          ],
        ]}
      />
      {invitations > 0 && (
        <p>
          <a class="button primary" href="/dashboard/my-invitations" safe>
            {invitations === 1 ? 'You have an open invitation' : `You have ${invitations} open invitations`}
          </a>
        </p>
      )}
      <Section title="Name">
        <Form visit={context} action={`${PATH}/name`} class="card">
          <FormProblem formState={name} />
          {field(name, 'name', 'Name', { value: user.name, autocomplete: 'name' })}
          <button>Change the name</button>
        </Form>
      </Section>
      <Section title="Password">
        <Form visit={context} action={`${PATH}/password`} class="card">
          <FormProblem formState={password} />
          {currentPasswordField(password, user.email)}
          {field(password, 'password', 'New password', {
            type: 'password',
            autocomplete: 'new-password',
            hint: 'At least 8 characters. Changing it signs you out everywhere else.',
            required: true,
          })}
          <button>Change the password</button>
        </Form>
      </Section>
      <SecondFactorSection context={context} />
      {safeOidc}
      {safeSessions}
      <Section title="Leave">
        {confirm(context, 'Leave the organization', {
          action: `${PATH}/leave`,
          id: 'leave',
          question: `You lose access to ${organization.name} until an owner invites you again.`,
        })}
      </Section>
    </Layout>
  );
}
