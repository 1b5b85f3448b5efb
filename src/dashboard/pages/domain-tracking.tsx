import { Type } from 'typebox';
import { changeTracking, showDomain, type ShownDomain } from '../../accounts/domains.ts';
import { act } from '../act.ts';
import { Facts, Section, Text } from '../elements.tsx';
import { BLANK, Checkbox, Form, FormProblem, Problem } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, idOf, page, type PageRow, Redirect } from '../page.ts';

const PATH = '/dashboard/domains';

/** The tracking section of a domain's page. */
export function TrackingSection({ context, domain }: { context: Context; domain: ShownDomain }): Html {
  const { id, open_tracking: opens, click_tracking: clicks } = domain;
  return (
    <Section title="Open and click tracking">
      <Facts
        facts={[
          ['Opens', <Text text={opens ? 'Tracked' : 'Not tracked'} />],
          ['Clicks', <Text text={clicks ? 'Tracked' : 'Not tracked'} />],
        ]}
      />
      {context.role === 'owner' && (
        <p>
          <a href={`${PATH}/${id}/tracking`}>Change tracking</a>
        </p>
      )}
    </Section>
  );
}

const Fields = Type.Object({
  open_tracking: Type.Optional(Type.Boolean()),
  click_tracking: Type.Optional(Type.Boolean()),
});

const showForm = page(Type.Object({}), async (context) => formPage(context, BLANK));

const change = action(Fields, {
  renderForm: formPage,
  run: (context, { open_tracking = false, click_tracking = false }) => {
    const { deps, organization } = context;
    const id = idOf(context);
    const tracking = { open_tracking, click_tracking };
    const { pool, senders } = deps.senderDomains;
    return act(context, {
      action: 'domains.update',
      run: () => changeTracking({ pool, senders, publicUrl: deps.publicUrl }, organization.id, id, tracking),
      target: id,
      detail: ({ name }) => ({ name, ...tracking }),
      next: () => new Redirect(`${PATH}/${id}`, { flash: 'Tracking was changed for email sent from now on.' }),
    });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', `${PATH}/:id/tracking`, 'owner', showForm],
  ['POST', `${PATH}/:id/tracking`, 'owner', change],
];

async function formPage(context: Context, formState: FormState): Promise<Html> {
  const { id, name, ...domain } = await showDomain(context.deps.senderDomains, context.organization.id, idOf(context));
  const [problem] = Object.entries(formState.problems).flatMap(([field, text]) => (field === '' ? [] : text));
  const crumbs = [
    { path: PATH, name: 'Domains' },
    { path: `${PATH}/${id}`, name },
  ];
  return (
    <Layout context={context} title="Change tracking" crumbs={crumbs}>
      <Form visit={context} action={`${PATH}/${id}/tracking`} class="card">
        <FormProblem formState={formState} />
        <Problem text={problem} isAlert />
        <fieldset>
          <legend>Track in email from this domain</legend>
          <Checkbox
            label="Opens, by an invisible image in the HTML"
            name="open_tracking"
            value="on"
            input={formState.input}
            checked={domain.open_tracking}
          />
          <Checkbox
            label="Clicks, by links in the HTML that lead through this service, or through Postmark for email that it sends"
            name="click_tracking"
            value="on"
            input={formState.input}
            checked={domain.click_tracking}
          />
          <p class="hint">
            Tracking is personal data: tell recipients about it, and ask for their consent where the law requires that.
          </p>
        </fieldset>
        <button class="primary">Save</button>
      </Form>
    </Layout>
  );
}
