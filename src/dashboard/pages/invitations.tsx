import { Type } from 'typebox';
import { digest } from '../../lib/digest.ts';
import { createSession } from '../../accounts/sign-in.ts';
import {
  acceptInvitation,
  acceptOwnInvitation,
  declineInvitation,
  requireInvitation,
} from '../../accounts/invitations.ts';
import { type Invitation, listInvitationsOf } from '../../store/accounts/invitations.ts';
import { setSessionOrganization } from '../../store/accounts/sessions.ts';
import { findUserByEmail, type UserWithPassword } from '../../store/accounts/users.ts';
import { BLANK, field, Form, FormProblem } from '../form-elements.tsx';
import { PlainLayout } from '../layout.tsx';
import { SignInLink } from './oidc.tsx';
import { FORGOT_PASSWORD } from './password-reset.tsx';
import {
  type FormState,
  type Html,
  type PageRow,
  pathOf,
  publicAction,
  publicPage,
  Redirect,
  type Visit,
} from '../page.ts';

const Acceptance = Type.Object({
  name: Type.Optional(Type.String()),
  password: Type.Optional(Type.String()),
});

const showInvitation = publicPage(Type.Object({}), (visit) => invitationPage(visit, BLANK));

const accept = publicAction(Acceptance, {
  renderForm: invitationPage,
  run: async (visit, { name = '', password = '' }) => {
    const { pool, session, params, deps } = visit;
    const who = session?.user ?? { name, password };
    const { userId, invitation } = await acceptInvitation(pool, params['token'] ?? '', who, deps.limits.organization);
    const token = session ? session.token : await createSession(pool, userId, visit);
    await setSessionOrganization(pool, digest(token), invitation.org_id);
    return new Redirect('/dashboard', {
      flash: `Welcome to ${invitation.organization}.`,
      ...(!session && { token }),
    });
  },
});

const OWN = '/dashboard/my-invitations';

/** The invitations of the user; the only page for a user without organizations. */
const listOwn = publicPage(Type.Object({}), async (visit) => {
  const { pool, session } = visit;
  if (!session) return signInFirst();
  const invitations = await listInvitationsOf(pool, session.user.id);
  return <OwnInvitationsPage visit={visit} invitations={invitations} />;
});

const acceptOwn = publicAction(Type.Object({}), {
  run: async ({ pool, session, params, deps }) => {
    if (!session) return signInFirst();
    const limits = deps.limits.organization;
    const invitation = await acceptOwnInvitation(pool, session.user, params['id'] ?? '', limits);
    await setSessionOrganization(pool, digest(session.token), invitation.org_id);
    return new Redirect('/dashboard', { flash: `Welcome to ${invitation.organization}.` });
  },
});

const decline = publicAction(Type.Object({}), {
  run: async ({ pool, session, params }) => {
    if (!session) return signInFirst();
    await declineInvitation(pool, session.user, params['id'] ?? '');
    return new Redirect(OWN);
  },
});

function signInFirst(): Redirect {
  return new Redirect(`/dashboard/sign-in?next=${encodeURIComponent(OWN)}`);
}

export const rows: readonly PageRow[] = [
  ['GET', OWN, 'public', listOwn],
  ['POST', `${OWN}/:id/accept`, 'public', acceptOwn],
  ['POST', `${OWN}/:id/decline`, 'public', decline],
  ['GET', '/dashboard/invitations/:token', 'public', showInvitation],
  ['POST', '/dashboard/invitations/:token', 'public', accept],
];

function OwnInvitationsPage({ visit, invitations }: { visit: Visit; invitations: readonly Invitation[] }): Html {
  return (
    <PlainLayout visit={visit} title="Your invitations">
      {invitations.length === 0 && <p>You have no open invitation.</p>}
      {invitations.map(({ id, organization, role }) => (
        <section class="card">
          <p>
            <strong safe>{organization}</strong> invites you as <strong>{role}</strong>.
          </p>
          <div class="row">
            <Form visit={visit} action={`${OWN}/${id}/accept`}>
              <button class="primary">Accept</button>
            </Form>
            <Form visit={visit} action={`${OWN}/${id}/decline`}>
              <button>Decline</button>
            </Form>
          </div>
        </section>
      ))}
      <p>
        <a href="/dashboard">Back to the dashboard</a>
      </p>
    </PlainLayout>
  );
}

/** @throws ServiceError not_found */
async function invitationPage(visit: Visit, formState: FormState): Promise<Html> {
  const invitation = await requireInvitation(visit.pool, visit.params['token'] ?? '');
  const account = await findUserByEmail(visit.pool, invitation.email);
  return (
    <PlainLayout visit={visit} title={`Join ${invitation.organization}`}>
      <p>
        You are invited as <strong>{invitation.role}</strong>, with the address <strong safe>{invitation.email}</strong>
        .
      </p>
      {nextStep(visit, formState, invitation, account)}
    </PlainLayout>
  );
}

/** @param account the one with the invited address */
function nextStep(
  visit: Visit,
  formState: FormState,
  invitation: Invitation,
  account: UserWithPassword | undefined,
): Html {
  const path = pathOf(visit);
  const { session } = visit;
  if (session && session.user.email !== invitation.email) {
    return (
      <Form visit={visit} action="/dashboard/sign-out" class="card">
        <p>
          You are signed in as <strong safe>{session.user.email}</strong>. Sign out, then open this link again.
        </p>
        <button>Sign out</button>
      </Form>
    );
  }
  if (invitation.requires_oidc && !session) return <SignInLink visit={visit} next={path} isPrimary />;
  if (account && account.proved_at === null) return <ConfirmAccount visit={visit} />;
  if (account && !session) {
    return (
      <p>
        <a class="button primary" href={`/dashboard/sign-in?next=${encodeURIComponent(path)}`}>
          Sign in to accept
        </a>
      </p>
    );
  }
  return (
    <>
      <form method="post" action={path} class="card">
        <FormProblem formState={formState} />
        {!session && (
          <>
            {field(formState, 'name', 'Your name', { autocomplete: 'name' })}
            {field(formState, 'password', 'Choose a password', {
              type: 'password',
              autocomplete: 'new-password',
              hint: 'At least 8 characters; a password manager makes a good one.',
              required: true,
            })}
          </>
        )}
        <button class="primary">Accept the invitation</button>
      </form>
      {!session && visit.deps.oidc !== null && <SignInLink visit={visit} next={path} />}
    </>
  );
}

/** Leads to what confirms an account, after which the invitation can be accepted. */
function ConfirmAccount({ visit }: { visit: Visit }): Html {
  return (
    <section class="card">
      <p>
        The account with this address was never confirmed: another person may have created it and know its password.
        Reset the password, sign in with the new one, and open this link again.
      </p>
      <p>
        <a class="button primary" href={FORGOT_PASSWORD}>
          Reset the password
        </a>
      </p>
      {visit.deps.oidc !== null && !visit.session?.byOidc && <SignInLink visit={visit} next={pathOf(visit)} />}
    </section>
  );
}
