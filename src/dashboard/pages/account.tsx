import { Type } from 'typebox';
import { changePassword, removeMember, renameUser } from '../../intake/users.ts';
import { act } from '../act.ts';
import { Facts, Text } from '../elements.tsx';
import { BLANK, Confirm, Field, Form, FormProblem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type Filled, type Html, page, type PageRow } from '../page.ts';

const PATH = '/dashboard/account';

const show = page(Type.Object({}), async (context) => <AccountPage context={context} name={BLANK} password={BLANK} />);

const rename = action(Type.Object({ name: Type.Optional(Type.String()) }), {
  again: (context, filled) => <AccountPage context={context} name={filled} password={BLANK} />,
  run: (context, { name = '' }) =>
    act(context, {
      action: 'account.rename',
      run: () => renameUser(context.pool, context.user.id, name),
      target: context.user.id,
      then: PATH,
      said: 'Your name was changed.',
    }),
});

const setNewPassword = action(Type.Object({ current: Type.String(), password: Type.String() }), {
  again: (context, filled) => <AccountPage context={context} name={BLANK} password={filled} />,
  run: (context, given) =>
    act(context, {
      action: 'account.password',
      run: () => changePassword(context.pool, context.user.id, given, context.session.token),
      target: context.user.id,
      then: PATH,
      said: 'Your password was changed; you are signed out everywhere else.',
    }),
});

const leave = action(Type.Object({}), {
  run: (context) =>
    act(context, {
      action: 'members.leave',
      run: () => removeMember(context.pool, context.organization.id, context.user.id),
      target: context.user.id,
      detail: { email: context.user.email, role: context.role },
      then: '/dashboard',
    }),
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', show],
  ['POST', `${PATH}/name`, 'viewer', rename],
  ['POST', `${PATH}/password`, 'viewer', setNewPassword],
  ['POST', `${PATH}/leave`, 'viewer', leave],
];

function AccountPage({ context, name, password }: { context: Context; name: Filled; password: Filled }): Html {
  const { user, organization, role } = context;
  return (
    <Layout context={context} title="Your account">
      <Facts
        facts={[
          ['Email', <Text text={user.email} />],
          ['Role', <Text text={`${role} of ${organization.name}`} />],
        ]}
      />
      <section>
        <h2>Name</h2>
        <Form visit={context} action={`${PATH}/name`} class="card">
          <FormProblem filled={name} />
          <Field label="Name" name="name" filled={name} value={user.name} autocomplete="name" />
          <button>Change the name</button>
        </Form>
      </section>
      <section>
        <h2>Password</h2>
        <Form visit={context} action={`${PATH}/password`} class="card">
          <FormProblem filled={password} />
          <input type="text" value={user.email} autocomplete="username" readonly hidden />
          <Field
            label="Current password"
            name="current"
            type="password"
            filled={password}
            autocomplete="current-password"
            required
          />
          <Field
            label="New password"
            name="password"
            type="password"
            filled={password}
            autocomplete="new-password"
            hint="At least 8 characters. It signs you out everywhere else."
            required
          />
          <button>Change the password</button>
        </Form>
      </section>
      <section>
        <h2>Leave</h2>
        <Confirm
          visit={context}
          action={`${PATH}/leave`}
          id="leave"
          label="Leave the organization"
          question={`You will not see ${organization.name} any more, until somebody invites you again.`}
        />
      </section>
    </Layout>
  );
}
