import { Type } from 'typebox';
import { digest } from '../../lib/digest.ts';
import { escapeHtml } from '../../lib/html.ts';
import { makeKnownBrowsers } from '../../domain/known-browser.ts';
import { makeChallenges } from '../../accounts/sign-in-challenge.ts';
import { signIn, signOut } from '../../accounts/sign-in.ts';
import { setSessionOrganization } from '../../store/accounts/sessions.ts';
import { tooManyAttempts } from '../errors.tsx';
import { BLANK, field, FormProblem } from '../form-elements.tsx';
import { valueOf } from '../forms.ts';
import { PlainLayout } from '../layout.tsx';
import {
  action,
  type FormState,
  type Html,
  type PageRow,
  publicAction,
  publicPage,
  Redirect,
  Reply,
  type Visit,
} from '../page.ts';
import { safeNext } from '../session.ts';
import { passwordRefused, SignInLink } from './oidc.tsx';
import { FORGOT_PASSWORD } from './password-reset.tsx';
import { CodePage } from './sign-in-code.tsx';
import { signedIn } from './signed-in.ts';

const Credentials = Type.Object({
  email: Type.String({ maxLength: 1_000 }),
  password: Type.String({ maxLength: 1_000 }),
  next: Type.Optional(Type.String()),
});

const Query = Type.Object({
  next: Type.Optional(Type.String()),
  /** True if the user submitted a form without a session. */
  ended: Type.Optional(Type.Boolean()),
});

const showSignIn = publicPage(Query, async (visit) => {
  const { next, ended = false } = visit.query;
  if (visit.session) return new Redirect(safeNext(next));
  return <SignInPage visit={visit} formState={BLANK} next={safeNext(next)} hasEnded={ended} />;
});

const doSignIn = publicAction(Credentials, {
  renderForm: (visit, formState) => (
    <SignInPage visit={visit} formState={formState} next={safeNext(valueOf(formState.input, 'next'))} />
  ),
  run: async (visit, { email, password, next }) => {
    const { pool, address, userAgent, browser, deps } = visit;
    const knownBrowsers = makeKnownBrowsers(deps.secretKey);
    const { issue: issueChallenge } = makeChallenges(deps.secretKey);
    const result = await signIn(
      { pool, knownBrowsers, issueChallenge },
      { email, password, address, userAgent, browser },
    );
    if (result.kind === 'signed_in') return signedIn(visit, result, next);
    if (result.kind === 'code_required') {
      return <CodePage visit={visit} challenge={result.challenge} next={safeNext(next)} />;
    }
    if (result.kind === 'oidc_required') return passwordRefused(visit, safeNext(next));
    if (result.kind === 'rate_limited') throw tooManyAttempts(result.seconds);
    const formState = {
      input: { email, ...(next !== undefined && { next }) },
      problems: { '': 'That email or password is not right.' },
    };
    return new Reply(<SignInPage visit={visit} formState={formState} next={safeNext(next)} />, { status: 401 });
  },
});

const doSignOut = publicAction(Type.Object({}), {
  run: async ({ pool, session }) => {
    if (session) await signOut(pool, session.user, session.token);
    return new Redirect('/dashboard/sign-in', { token: null });
  },
});

const chooseOrganization = action(Type.Object({ organization: Type.String({ 'x-rule': 'one-line' }) }), {
  run: async ({ pool, session }, { organization }) => {
    // Ignored if the user is not a member of the organization.
    await setSessionOrganization(pool, digest(session.token), organization);
    return new Redirect('/dashboard');
  },
});

export const rows: readonly PageRow[] = [
  ['GET', '/dashboard/sign-in', 'public', showSignIn],
  ['POST', '/dashboard/sign-in', 'public', doSignIn],
  ['POST', '/dashboard/sign-out', 'public', doSignOut],
  ['POST', '/dashboard/organization', 'viewer', chooseOrganization],
];

interface SignInPageProps {
  readonly visit: Visit;
  readonly formState: FormState;
  readonly next: string;
  readonly hasEnded?: boolean;
}

function SignInPage({ visit, formState, next, hasEnded = false }: SignInPageProps): Html {
  return (
    <PlainLayout visit={visit} title="Sign in">
      {hasEnded && (
        <p class="notice warning" role="status">
          Your session has ended, so nothing was changed. Sign in, and fill in the form again.
        </p>
      )}
      <form method="post" action="/dashboard/sign-in" class="card">
        <FormProblem formState={formState} />
        {field(formState, 'email', 'Email', {
          type: 'email',
          autocomplete: 'username',
          required: true,
          autofocus: true,
        })}
        {field(formState, 'password', 'Password', {
          type: 'password',
          autocomplete: 'current-password',
          required: true,
        })}
        <input type="hidden" name="next" value={escapeHtml(next)} />
        <button class="primary">Sign in</button>
      </form>
      {visit.deps.oidc !== null && <SignInLink visit={visit} next={next} />}
      <p>
        <a href={FORGOT_PASSWORD}>Forgot your password?</a>
      </p>
      <p class="hint">
        The first user of an organization is created on the command line:{' '}
        <code>npm run admin -- user create --organization O --email E</code>
      </p>
    </PlainLayout>
  );
}
