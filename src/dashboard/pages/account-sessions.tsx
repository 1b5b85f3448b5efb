import { Type } from 'typebox';
import { endSession, signOutElsewhere, signOutEverywhere } from '../../accounts/sign-in.ts';
import { browserName } from '../../domain/browser-name.ts';
import { digest } from '../../lib/digest.ts';
import { type ListedSession, listSessions } from '../../store/accounts/sessions.ts';
import { Section, Sub, Table, TimeCell } from '../elements.tsx';
import { confirm, Form } from '../form-elements.tsx';
import { action, type Context, type Html, idOf, type PageRow, Redirect } from '../page.ts';

const ACCOUNT = '/dashboard/account';
const NOTHING = Type.Object({});

const endOne = action(NOTHING, {
  run: async (context) => {
    await endSession(context.pool, context.user, idOf(context));
    return new Redirect(ACCOUNT, { flash: 'The session was ended.' });
  },
});

const endOthers = action(NOTHING, {
  run: async ({ pool, user, session }) => {
    await signOutElsewhere(pool, user, session.token);
    return new Redirect(ACCOUNT, { flash: 'You are signed out in all other browsers.' });
  },
});

const endAll = action(NOTHING, {
  run: async ({ pool, user }) => {
    await signOutEverywhere(pool, user);
    return new Redirect('/dashboard/sign-in', { token: null });
  },
});

export const rows: readonly PageRow[] = [
  ['POST', `${ACCOUNT}/sessions/:id/end`, 'viewer', endOne],
  ['POST', `${ACCOUNT}/sign-out-others`, 'viewer', endOthers],
  ['POST', `${ACCOUNT}/sign-out`, 'viewer', endAll],
];

/** The list of the user's sessions on the account page. */
export async function sessionsSection(context: Context): Promise<Html> {
  const sessions = await listSessions(context.pool, context.user.id, digest(context.session.token));
  return (
    <Section title="Sessions">
      <Table
        layout="cards"
        caption="Sessions"
        columns={['Browser', 'Sign-in', 'Address', 'Signed in', 'Last used', '']}
      >
        {sessions.map((session) => (
          <SessionRow context={context} session={session} />
        ))}
      </Table>
      <div class="row">
        {sessions.length > 1 &&
          confirm(context, 'Sign out other sessions', {
            action: `${ACCOUNT}/sign-out-others`,
            id: 'sign-out-others',
            question: 'Ends your sessions in all other browsers.',
          })}
        {confirm(context, 'Sign out everywhere', {
          action: `${ACCOUNT}/sign-out`,
          id: 'sign-out-everywhere',
          question: 'Ends your sessions in all browsers, this one included.',
        })}
      </div>
    </Section>
  );
}

/** Returns the name of the sign-in method of a session. */
function signInOf({ deps }: Context, byOidc: boolean): string {
  if (!byOidc) return 'Password';
  return deps.oidc?.name ?? 'OpenID Connect';
}

function SessionRow({ context, session }: { context: Context; session: ListedSession }): Html {
  const {
    id,
    is_current: isCurrent,
    user_agent: userAgent,
    address,
    created_at,
    last_seen_at,
    by_oidc: byOidc,
  } = session;
  return (
    <tr>
      <th scope="row">
        <span safe>{browserName(userAgent ?? '')}</span>
        {isCurrent && <Sub text="This session" />}
      </th>
      <td safe>{signInOf(context, byOidc)}</td>
      <td safe>{address ?? 'unknown'}</td>
      <TimeCell at={created_at} short />
      <TimeCell at={last_seen_at} short />
      <td>
        {!isCurrent && (
          <Form visit={context} action={`${ACCOUNT}/sessions/${id}/end`} class="row">
            <button class="small">End session</button>
          </Form>
        )}
      </td>
    </tr>
  );
}
