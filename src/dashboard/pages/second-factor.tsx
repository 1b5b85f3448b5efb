import { Type } from 'typebox';
import { renderSVG } from 'uqr';
import {
  completeSetUp,
  readSecondFactor,
  renewRecoveryCodes,
  type SetUp,
  startSetUp,
  turnOff,
} from '../../accounts/second-factor.ts';
import { Command, Copy, Section } from '../elements.tsx';
import { BLANK, currentPasswordField, field, Form, FormProblem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, page, type PageRow, Redirect } from '../page.ts';
import { secondFactorDeps } from '../second-factor-deps.ts';

export const SECOND_FACTOR = '/dashboard/account/second-factor';
const CRUMBS = [{ path: '/dashboard/account', name: 'Your account' }];
const Code = Type.Object({ code: Type.String({ maxLength: 100 }) });
const CodeAndPassword = Type.Object({ ...Code.properties, current: Type.Optional(Type.String()) });

const depsOf = ({ deps }: Context) => secondFactorDeps(deps);

const show = page(Type.Object({}), (context) => secondFactorPage(context, BLANK));

const start = action(Type.Object({}), {
  run: async (context) => {
    await startSetUp(depsOf(context), context.user.id);
    return new Redirect(SECOND_FACTOR);
  },
});

const complete = action(CodeAndPassword, {
  renderForm: secondFactorPage,
  run: async (context, { code, current = '' }) => {
    const { byOidc, token: keep } = context.session;
    const input = { code, current: byOidc ? null : current, keep };
    const codes = await completeSetUp(depsOf(context), context.user, input);
    return <RecoveryCodesPage context={context} codes={codes} />;
  },
});

const renew = action(Code, {
  renderForm: secondFactorPage,
  run: async (context, { code }) => {
    const codes = await renewRecoveryCodes(depsOf(context), context.user, code);
    return <RecoveryCodesPage context={context} codes={codes} />;
  },
});

const off = action(Code, {
  renderForm: secondFactorPage,
  run: async (context, { code }) => {
    await turnOff(depsOf(context), context.user, code);
    return new Redirect(SECOND_FACTOR, { flash: 'Two-factor authentication is off.' });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', SECOND_FACTOR, 'viewer', show],
  ['POST', SECOND_FACTOR, 'viewer', start],
  ['POST', `${SECOND_FACTOR}/complete`, 'viewer', complete],
  ['POST', `${SECOND_FACTOR}/recovery-codes`, 'viewer', renew],
  ['POST', `${SECOND_FACTOR}/off`, 'viewer', off],
];

/** The second-factor section of the account page. */
export function SecondFactorSection({ context }: { context: Context }): Html {
  return (
    <Section title="Two-factor authentication">
      <p>
        {context.session.hasSecondFactor
          ? 'Sign-in by password asks for a code of your authenticator app.'
          : 'Off. A code of an authenticator app protects your account when your password is known to others.'}
      </p>
      <p>
        <a class="button" href={SECOND_FACTOR}>
          {context.session.hasSecondFactor ? 'Manage' : 'Set up'}
        </a>
      </p>
    </Section>
  );
}

async function secondFactorPage(context: Context, formState: FormState): Promise<Html> {
  const { isOn, recoveryCodes, setUp } = await readSecondFactor(depsOf(context), context.user);
  return (
    <Layout context={context} title="Two-factor authentication" crumbs={CRUMBS}>
      {context.organization.requires_second_factor && !isOn && !context.session.byOidc && (
        <p class="notice" role="status">
          <strong safe>{context.organization.name}</strong> requires two-factor authentication. Set it up to open its
          pages.
        </p>
      )}
      {isOn ? (
        <Manage context={context} formState={formState} recoveryCodes={recoveryCodes} />
      ) : setUp ? (
        <SetUpForm context={context} formState={formState} setUp={setUp} />
      ) : (
        <Form visit={context} action={SECOND_FACTOR} class="card">
          <p>You need an authenticator app, such as the one of your password manager or phone.</p>
          <button class="primary">Set up</button>
        </Form>
      )}
    </Layout>
  );
}

const CODE_FIELD = { autocomplete: 'one-time-code', required: true } as const;

function SetUpForm({ context, formState, setUp }: { context: Context; formState: FormState; setUp: SetUp }): Html {
  const { user, session } = context;
  const { byOidc } = session;
  const image = `data:image/svg+xml;base64,${Buffer.from(renderSVG(setUp.uri)).toString('base64')}`;
  return (
    <Form visit={context} action={`${SECOND_FACTOR}/complete`} class="card">
      <p>
        Scan this code with your authenticator app, or enter the secret there. Then enter the code that the app shows.
      </p>
      <img src={image} alt="QR code of the secret" width="220" height="220" />
      <p>
        Secret: <Copy value={setUp.secret} />
      </p>
      <FormProblem formState={formState} />
      {!byOidc && currentPasswordField(formState, user.email, true)}
      {field(formState, 'code', 'Code', { ...CODE_FIELD, hint: 'Six digits.', autofocus: byOidc })}
      <button class="primary">Turn on</button>
    </Form>
  );
}

function Manage(props: { context: Context; formState: FormState; recoveryCodes: number }): Html {
  const { context, formState, recoveryCodes } = props;
  return (
    <Form visit={context} action={`${SECOND_FACTOR}/recovery-codes`} class="card">
      <p>Two-factor authentication is on. Unused recovery codes: {recoveryCodes}.</p>
      <FormProblem formState={formState} />
      {field(formState, 'code', 'Code', { ...CODE_FIELD, hint: 'A code of the app, or a recovery code.' })}
      <div class="row">
        <button>Create new recovery codes</button>
        <button class="danger" formaction={`${SECOND_FACTOR}/off`}>
          Turn off
        </button>
      </div>
    </Form>
  );
}

function RecoveryCodesPage({ context, codes }: { context: Context; codes: readonly string[] }): Html {
  return (
    <Layout context={context} title="Recovery codes" crumbs={CRUMBS}>
      <section class="card">
        <p>
          Two-factor authentication is on. Save these codes now: you won't be able to see them again. Each replaces a
          code of your app once, and earlier codes no longer work.
        </p>
        <Command text={codes.join('\n')} />
        <p>
          <a href="/dashboard/account">Back to your account</a>
        </p>
      </section>
    </Layout>
  );
}
