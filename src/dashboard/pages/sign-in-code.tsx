import { Type } from 'typebox';
import { makeKnownBrowsers } from '../../domain/known-browser.ts';
import { escapeHtml } from '../../lib/html.ts';
import { completeSignIn, makeChallenges } from '../../accounts/sign-in-challenge.ts';
import { BLANK, field, FormProblem } from '../form-elements.tsx';
import { valueOf } from '../forms.ts';
import { BackToSignIn, PlainLayout } from '../layout.tsx';
import { type FormState, type Html, type PageRow, publicAction, Redirect, type Visit } from '../page.ts';
import { secondFactorDeps } from '../second-factor-deps.ts';
import { safeNext } from '../session.ts';
import { signedIn } from './signed-in.ts';

const PATH = '/dashboard/sign-in/code';

const Entry = Type.Object({
  challenge: Type.String({ maxLength: 1_000 }),
  code: Type.String({ maxLength: 100 }),
  next: Type.Optional(Type.String()),
});

const enterCode = publicAction(Entry, {
  renderForm: (visit, formState) => {
    const [challenge, next] = [valueOf(formState.input, 'challenge') ?? '', valueOf(formState.input, 'next')];
    return <CodePage visit={visit} formState={formState} challenge={challenge} next={safeNext(next)} />;
  },
  run: async (visit, { challenge, code, next }) => {
    const { secretKey } = visit.deps;
    const [challenges, knownBrowsers] = [makeChallenges(secretKey), makeKnownBrowsers(secretKey)];
    const signInDeps = { ...secondFactorDeps(visit.deps), challenges, knownBrowsers };
    const result = await completeSignIn(signInDeps, { ...visit, challenge, code });
    if (!result) return new Redirect('/dashboard/sign-in');
    return signedIn(visit, result, next);
  },
});

export const rows: readonly PageRow[] = [['POST', PATH, 'public', enterCode]];

interface CodePageProps {
  readonly visit: Visit;
  readonly formState?: FormState;
  readonly challenge: string;
  readonly next: string;
}

export function CodePage({ visit, formState = BLANK, challenge, next }: CodePageProps): Html {
  return (
    <PlainLayout visit={visit} title="Enter your code">
      <form method="post" action={PATH} class="card">
        <FormProblem formState={formState} />
        {field(formState, 'code', 'Code', {
          autocomplete: 'one-time-code',
          hint: 'A code of your authenticator app, or a recovery code.',
          required: true,
          autofocus: true,
        })}
        <input type="hidden" name="challenge" value={challenge} />
        <input type="hidden" name="next" value={escapeHtml(next)} />
        <button class="primary">Sign in</button>
      </form>
      <BackToSignIn />
    </PlainLayout>
  );
}
