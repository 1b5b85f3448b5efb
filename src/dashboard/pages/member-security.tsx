import { Type } from 'typebox';
import { requireOfMembers } from '../../accounts/sign-in-requirements.ts';
import { act } from '../act.ts';
import { Section } from '../elements.tsx';
import { BLANK, Checkbox, Form } from '../form-elements.tsx';
import { action, type Context, type Html, type PageRow } from '../page.ts';

const PATH = '/dashboard/members/security';

const Requirements = Type.Object({
  second_factor: Type.Optional(Type.Boolean()),
  oidc: Type.Optional(Type.Boolean()),
});

const save = action(Requirements, {
  run: (context, { second_factor = false, oidc = false }) => {
    const { pool, organization, session } = context;
    const required = { requires_second_factor: second_factor, requires_oidc: oidc };
    return act(context, {
      action: 'organizations.security',
      run: () => requireOfMembers(pool, organization.id, required, session.byOidc),
      target: organization.id,
      detail: required,
      next: '/dashboard/members',
      flash: 'The sign-in requirements were saved.',
    });
  },
});

export const rows: readonly PageRow[] = [['POST', PATH, 'owner', save]];

/** The sign-in requirements for members, on the Members page. */
export function SecuritySection({ context }: { context: Context }): Html {
  const { requires_second_factor: requiresFactor } = context.organization;
  return (
    <Section title="Sign-in requirements">
      <Form visit={context} action={PATH} class="card">
        <Checkbox
          name="second_factor"
          value="on"
          label="Require two-factor authentication for sign-in by password"
          input={BLANK.input}
          checked={requiresFactor}
        />
        <p class="hint">
          Members who sign in by password without it can open only the page on which they set it up. Sign-in at the
          identity provider and API keys are not affected.
        </p>
        <OidcRequirement context={context} />
        <button>Save requirements</button>
      </Form>
    </Section>
  );
}

function OidcRequirement({ context }: { context: Context }): Html {
  const { deps, organization, session } = context;
  const name = deps.oidc?.name ?? 'OpenID Connect';
  if (!deps.oidc && !organization.requires_oidc) return <></>;
  if (!session.byOidc) {
    return (
      <p class="hint" safe>
        {`To require sign-in with ${name} of all members, sign in with it yourself first.`}
      </p>
    );
  }
  return (
    <>
      <Checkbox
        name="oidc"
        value="on"
        label={`Require sign-in with ${name} of all members`}
        input={BLANK.input}
        checked={organization.requires_oidc}
      />
      <p class="hint">
        Passwords and two-factor authentication no longer open this organization; the identity provider decides how
        members prove who they are.
      </p>
    </>
  );
}
