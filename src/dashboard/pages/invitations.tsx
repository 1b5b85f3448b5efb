import { Type } from 'typebox';
import { digest } from '../../domain/digest.ts';
import { beginSession } from '../../intake/sign-in.ts';
import { acceptInvitation, isUser, requireInvitation } from '../../intake/users.ts';
import { insertAudit } from '../../store/audit.ts';
import type { Invitation } from '../../store/invitations.ts';
import { setSessionOrganization } from '../../store/sessions.ts';
import { BLANK, Field, Form, FormProblem } from '../form-elements.tsx';
import { PlainLayout } from '../layout.tsx';
import { type Filled, type Html, type PageRow, publicAction, publicPage, Redirect, type Visit } from '../page.ts';

const Acceptance = Type.Object({
  name: Type.Optional(Type.String()),
  password: Type.Optional(Type.String()),
});

const showInvitation = publicPage(Type.Object({}), (visit) => invitationPage(visit, BLANK));

const accept = publicAction(Acceptance, {
  again: invitationPage,
  run: async (visit, { name = '', password = '' }) => {
    const { pool, session, params } = visit;
    const who = session?.user ?? { name, password };
    const { userId, invitation } = await acceptInvitation(pool, params['token'] ?? '', who);
    await insertAudit(pool, {
      org_id: invitation.org_id,
      actor_kind: 'user',
      actor_id: userId,
      action: 'members.join',
      target: userId,
      detail: { email: invitation.email, role: invitation.role },
    });
    const token = session ? session.token : await beginSession(pool, userId);
    await setSessionOrganization(pool, digest(token), invitation.org_id);
    return new Redirect('/dashboard', {
      flash: `Welcome to ${invitation.organization}.`,
      ...(!session && { token }),
    });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', '/dashboard/invitations/:token', 'public', showInvitation],
  ['POST', '/dashboard/invitations/:token', 'public', accept],
];

/** @throws ServiceError not_found */
async function invitationPage(visit: Visit, filled: Filled): Promise<Html> {
  const invitation = await requireInvitation(visit.pool, visit.params['token'] ?? '');
  const isKnown = await isUser(visit.pool, invitation.email);
  return (
    <PlainLayout visit={visit} title={`Join ${invitation.organization}`}>
      <p>
        You are invited as <strong>{invitation.role}</strong>, with the address <strong safe>{invitation.email}</strong>
        .
      </p>
      <NextStep visit={visit} filled={filled} invitation={invitation} isKnown={isKnown} />
    </PlainLayout>
  );
}

interface NextStepProps {
  readonly visit: Visit;
  readonly filled: Filled;
  readonly invitation: Invitation;
  readonly isKnown: boolean;
}

function NextStep({ visit, filled, invitation, isKnown }: NextStepProps): Html {
  const path = visit.url.split('?')[0] ?? '';
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
  if (isKnown && !session) {
    return (
      <p>
        <a class="button primary" href={`/dashboard/sign-in?next=${encodeURIComponent(path)}`}>
          Sign in to accept
        </a>
      </p>
    );
  }
  return (
    <form method="post" action={path} class="card">
      <FormProblem filled={filled} />
      {!session && (
        <>
          <Field label="Your name" name="name" filled={filled} autocomplete="name" />
          <Field
            label="Choose a password"
            name="password"
            type="password"
            filled={filled}
            autocomplete="new-password"
            hint="At least 8 characters; a password manager makes a good one."
            required
          />
        </>
      )}
      <button class="primary">Accept the invitation</button>
    </form>
  );
}
