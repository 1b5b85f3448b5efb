import { Type } from 'typebox';
import { isResetToken, resetPassword } from '../../accounts/password-reset.ts';
import { countResetRequest } from '../../accounts/sign-in-limits.ts';
import { requireAddress } from '../../domain/email/address.ts';
import { emailPasswordReset } from '../../intake/account-emails.ts';
import { tooManyAttempts } from '../errors.tsx';
import { BLANK, field, FormProblem } from '../form-elements.tsx';
import { BackToSignIn, PlainLayout } from '../layout.tsx';
import {
  type FormState,
  type Html,
  type PageRow,
  pathOf,
  publicAction,
  publicPage,
  Redirect,
  Reply,
  type Visit,
} from '../page.ts';

export const FORGOT_PASSWORD = '/dashboard/forgot-password';
const SENT = `${FORGOT_PASSWORD}/sent`;
const RESET = '/dashboard/reset-password/:token';

const ask = publicPage(Type.Object({}), async (visit) => <RequestPage visit={visit} formState={BLANK} />);

const request = publicAction(Type.Object({ email: Type.String({ maxLength: 1_000 }) }), {
  renderForm: (visit, formState) => <RequestPage visit={visit} formState={formState} />,
  run: async ({ deps, pool, address }, { email }) => {
    const { accountEmails, log } = deps;
    const to = requireAddress(email, 'email');
    const seconds = await countResetRequest(pool, to, address);
    if (seconds !== undefined) throw tooManyAttempts(seconds);
    // Not awaited: the response time must not reveal whether a user with this address exists.
    if (accountEmails) {
      void emailPasswordReset(deps, accountEmails, to).catch((error: unknown) =>
        log.error({ err: error }, 'could not send a password reset'),
      );
    }
    return new Redirect(SENT);
  },
});

const showSent = publicPage(Type.Object({}), async (visit) => (
  <PlainLayout visit={visit} title="Check your email">
    <p>
      If an account has this address, an email with a link is on its way. The link works once, within an hour. Look into
      the spam folder too.
    </p>
    <BackToSignIn />
  </PlainLayout>
));

const showReset = publicPage(Type.Object({}), async (visit) => {
  const isOpen = await isResetToken(visit.pool, tokenOf(visit));
  return isOpen ? <ResetPage visit={visit} formState={BLANK} /> : expired(visit);
});

const reset = publicAction(Type.Object({ password: Type.String() }), {
  renderForm: (visit, formState) => <ResetPage visit={visit} formState={formState} />,
  run: async (visit, { password }) => {
    if (!(await resetPassword(visit.pool, tokenOf(visit), password))) return expired(visit);
    return (
      <PlainLayout visit={visit} title="Password changed">
        <p>Your password was changed, and all of your sessions have ended.</p>
        <p>
          <a class="button primary" href="/dashboard/sign-in">
            Sign in
          </a>
        </p>
      </PlainLayout>
    );
  },
});

function tokenOf({ params }: Visit): string {
  return params['token'] ?? '';
}

function expired(visit: Visit): Reply {
  const page = (
    <PlainLayout visit={visit} title="This link has expired">
      <p>The link was used, has expired, or your password was changed meanwhile.</p>
      <p>
        <a href={FORGOT_PASSWORD}>Request a new link</a>
      </p>
    </PlainLayout>
  );
  return new Reply(page, { status: 404 });
}

export const rows: readonly PageRow[] = [
  ['GET', FORGOT_PASSWORD, 'public', ask],
  ['POST', FORGOT_PASSWORD, 'public', request],
  ['GET', SENT, 'public', showSent],
  ['GET', RESET, 'public', showReset],
  ['POST', RESET, 'public', reset],
];

function RequestPage({ visit, formState }: { visit: Visit; formState: FormState }): Html {
  if (visit.deps.accountEmails === null) {
    return (
      <PlainLayout visit={visit} title="Reset your password">
        <p>This service sends no email about accounts. Ask its operator for a new password:</p>
        <p>
          <code>npm run admin -- user reset --email E</code>
        </p>
        <BackToSignIn />
      </PlainLayout>
    );
  }
  return (
    <PlainLayout visit={visit} title="Reset your password">
      <form method="post" action={FORGOT_PASSWORD} class="card">
        <FormProblem formState={formState} />
        {field(formState, 'email', 'Email', {
          type: 'email',
          autocomplete: 'username',
          hint: 'We email you a link to choose a new password.',
          required: true,
          autofocus: true,
        })}
        <button class="primary">Email me a link</button>
      </form>
      <BackToSignIn />
    </PlainLayout>
  );
}

function ResetPage({ visit, formState }: { visit: Visit; formState: FormState }): Html {
  return (
    <PlainLayout visit={visit} title="Choose a new password">
      <form method="post" action={pathOf(visit)} class="card">
        <FormProblem formState={formState} />
        {field(formState, 'password', 'New password', {
          type: 'password',
          autocomplete: 'new-password',
          hint: 'At least 8 characters. Changing it signs you out everywhere.',
          required: true,
          autofocus: true,
        })}
        <button class="primary">Change the password</button>
      </form>
    </PlainLayout>
  );
}
