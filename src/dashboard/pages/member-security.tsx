import { Type } from 'typebox';
import { setSecondFactorRequired } from '../../store/accounts/organizations.ts';
import { act } from '../act.ts';
import { Section } from '../elements.tsx';
import { Checkbox, Form } from '../form-elements.tsx';
import { action, type Context, type Html, type PageRow } from '../page.ts';

const PATH = '/dashboard/members/security';

const save = action(Type.Object({ second_factor: Type.Optional(Type.Boolean()) }), {
  run: (context, { second_factor: isRequired = false }) =>
    act(context, {
      action: 'organizations.security',
      run: () => setSecondFactorRequired(context.pool, context.organization.id, isRequired),
      target: context.organization.id,
      detail: { requires_second_factor: isRequired },
      next: '/dashboard/members',
      flash: 'The sign-in requirements were saved.',
    }),
});

export const rows: readonly PageRow[] = [['POST', PATH, 'owner', save]];

/** What members must do to open the organization, on the page Members. */
export function SecuritySection({ context }: { context: Context }): Html {
  return (
    <Section title="Sign-in requirements">
      <Form visit={context} action={PATH} class="card">
        <Checkbox
          name="second_factor"
          value="on"
          label="Require two-factor authentication of all members"
          given={{}}
          checked={context.organization.requires_second_factor}
        />
        <p class="hint">
          Members without it can open only the page on which they set it up. API keys are not affected.
        </p>
        <button>Save requirements</button>
      </Form>
    </Section>
  );
}
