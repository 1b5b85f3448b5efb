import { Type } from 'typebox';
import { renameOrganization } from '../../accounts/organizations.ts';
import { requireFound } from '../../domain/errors.ts';
import { readOrganizationSettings } from '../../store/accounts/organizations.ts';
import { act } from '../act.ts';
import { Copy, Facts, Section, Text, Time } from '../elements.tsx';
import { BLANK, field, Form, FormProblem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, page, type PageRow } from '../page.ts';
import { formatNumber } from '../../lib/text.ts';

const PATH = '/dashboard/settings';

const show = page(Type.Object({}), (context) => settingsPage(context, BLANK));

const rename = action(Type.Object({ name: Type.String({ maxLength: 200 }) }), {
  renderForm: settingsPage,
  run: (context, { name }) =>
    act(context, {
      action: 'organizations.update',
      run: () => renameOrganization(context.pool, context.organization.id, name),
      target: context.organization.id,
      detail: { name },
      next: PATH,
      flash: 'The organization was renamed.',
    }),
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', show],
  ['POST', PATH, 'owner', rename],
];

async function settingsPage(context: Context, formState: FormState): Promise<Html> {
  const { pool, organization, role, deps } = context;
  const settings = requireFound(await readOrganizationSettings(pool, organization.id), 'organization');
  const { created_at: created, monthly_quota: quota, body_retention_days: days } = settings;
  return (
    <Layout context={context} title="Settings">
      <Facts
        facts={[
          ['ID', <Copy value={organization.id} />],
          ['Created', <Time at={created} />],
          ['First steps', <a href="/dashboard/checklist">Show checklist</a>],
          [
            'Monthly quota',
            <Text text={quota === null ? 'No limit' : `${formatNumber(quota)} ${quota === 1 ? 'email' : 'emails'}`} />,
          ],
          ['Usage', <a href="/dashboard/keys/usage">Quota used this month</a>],
          ['Email content kept for', <Text text={retention(days ?? deps.retention.bodyDays)} />],
          ['Email records kept for', <Text text={retention(deps.retention.emailDays)} />],
          ['API request log kept for', <Text text={logRetention(deps.retention.requestLogDays)} />],
        ]}
      />
      <p class="hint">The operator of this service sets quota and retention.</p>
      <Section title="Name">
        {role === 'owner' ? (
          <Form visit={context} action={PATH} class="card">
            <FormProblem formState={formState} />
            {field(formState, 'name', 'Name', {
              value: organization.name,
              autocomplete: 'organization',
              required: true,
            })}
            <button>Save name</button>
          </Form>
        ) : (
          <p safe>{organization.name}</p>
        )}
      </Section>
    </Layout>
  );
}

function retention(days: number): string {
  return days === 0 ? 'Unlimited time' : daysInWords(days);
}

function logRetention(days: number): string {
  return days === 0 ? 'Turned off' : daysInWords(days);
}

export function daysInWords(days: number): string {
  return days === 1 ? '1 day' : `${formatNumber(days)} days`;
}
