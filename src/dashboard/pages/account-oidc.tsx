import { Type } from 'typebox';
import { unlinkFromUser } from '../../accounts/oidc-sign-in.ts';
import { requirePassword } from '../../accounts/users.ts';
import { listIdentities } from '../../store/accounts/oidc-identities.ts';
import { Section, Text } from '../elements.tsx';
import { BLANK, currentPasswordField, Form, FormProblem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { makeFlowCookie, sessionDigest } from '../oidc-flow.ts';
import { action, type Context, type FormState, type Html, page, type PageRow, Redirect, Reply } from '../page.ts';
import { oidcCookie } from '../session.ts';
import { requireOidc } from './oidc.tsx';

const ACCOUNT = '/dashboard/account';
const PATH = `${ACCOUNT}/oidc`;
const CRUMBS = [{ path: ACCOUNT, name: 'Your account' }];
const Password = Type.Object({ current: Type.String() });

const show = page(Type.Object({}), (context) => oidcPage(context, BLANK));

const link = action(Password, {
  renderForm: oidcPage,
  run: async (context, { current }) => {
    const { deps, pool, session, user } = context;
    const oidc = requireOidc(context);
    await requirePassword(pool, user, current);
    const { url, flow } = await oidc.begin();
    const sealed = makeFlowCookie(deps.secretKey).write(flow, ACCOUNT, Date.now(), sessionDigest(session));
    // The content security policy blocks a form's redirect to another site.
    const next = (
      <Layout context={context} title={`Link ${oidc.name}`} crumbs={CRUMBS}>
        <a class="button primary" href={url}>
          Continue to <span safe>{oidc.name}</span>
        </a>
      </Layout>
    );
    return new Reply(next, { headers: { 'set-cookie': oidcCookie(deps.publicUrl, sealed) } });
  },
});

const unlink = action(Password, {
  renderForm: oidcPage,
  run: async ({ pool, session, user }, { current }) => {
    await unlinkFromUser(pool, user, session.organizations, { current, keep: session.token });
    return new Redirect(ACCOUNT, { flash: 'The identity provider was unlinked; you are signed out everywhere else.' });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', show],
  ['POST', `${PATH}/link`, 'viewer', link],
  ['POST', `${PATH}/unlink`, 'viewer', unlink],
];

/** The OIDC section of the account page; empty without an identity provider. */
export async function oidcSection({ deps, pool, user }: Context): Promise<Html> {
  const identities = await listIdentities(pool, user.id);
  const isLinked = identities.length > 0;
  if (!isLinked && !deps.oidc) return '';
  return (
    <Section title="OpenID Connect">
      {identities.map(({ issuer }) => (
        <p>
          Linked to <Text text={issuer} />
        </p>
      ))}
      <a class="button" href={PATH} safe>
        {isLinked ? 'Unlink' : `Link ${deps.oidc?.name ?? ''}`}
      </a>
    </Section>
  );
}

async function oidcPage(context: Context, formState: FormState): Promise<Html> {
  const { pool, user } = context;
  const isLinked = (await listIdentities(pool, user.id)).length > 0;
  const name = isLinked ? 'the identity provider' : requireOidc(context).name;
  return (
    <Layout context={context} title={`${isLinked ? 'Unlink' : 'Link'} ${name}`} crumbs={CRUMBS}>
      <Form visit={context} action={`${PATH}/${isLinked ? 'unlink' : 'link'}`} class="card">
        <p>
          {isLinked
            ? `Unlinking signs you out everywhere else. A later sign-in at the identity provider with the verified address ${user.email} links it again.`
            : 'You can then sign in with your password or at the identity provider.'}
        </p>
        <FormProblem formState={formState} />
        {currentPasswordField(formState, user.email, true)}
        <button class={isLinked ? 'danger' : 'primary'}>{isLinked ? 'Unlink' : 'Link'}</button>
      </Form>
    </Layout>
  );
}
