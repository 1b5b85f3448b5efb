import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { sendTestEmail } from '../../intake/test-email.ts';
import { dismissFirstSteps, type FirstSteps, readFirstSteps } from '../../store/accounts/first-steps.ts';
import { act, buttonAction, RequestIdForm } from '../act.ts';
import { Form } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type Html, page, type PageRow, Redirect } from '../page.ts';

const PATH = '/dashboard/checklist';

interface Step {
  readonly name: string;
  readonly path: string;
  readonly hint: string;
}

const STEPS: Readonly<Record<Exclude<keyof FirstSteps, 'dismissed'>, Step>> = {
  domain: { name: 'Verify a domain', path: '/domains', hint: 'Email is sent from your own domain.' },
  key: { name: 'Create an API key', path: '/keys', hint: 'Your programs send with it.' },
  email: { name: 'Send your first email', path: '/emails', hint: 'By the API, or a test email to yourself.' },
  webhook: { name: 'Add a webhook', path: '/webhooks', hint: 'Your program learns of deliveries, bounces and opens.' },
  teammate: { name: 'Invite a teammate', path: '/members', hint: 'Members see emails and solve problems with you.' },
};

/** The first steps of an organization. Shown until all are done or a member dismisses them; refreshes itself. */
export async function Checklist({ context }: { context: Context }): Promise<string> {
  const { pool, organization, role } = context;
  const done = await readFirstSteps(pool, organization.id);
  const steps = Object.entries(STEPS) as [keyof typeof STEPS, Step][];
  const openSteps = steps.filter(([step]) => !done[step]);
  if (done.dismissed || openSteps.length === 0) return <section id="checklist" hidden />;
  return (
    <section
      id="checklist"
      class="card wide checklist"
      aria-labelledby="checklist-title"
      hx-get={PATH}
      hx-select="#checklist"
      hx-target="this"
      hx-swap="outerHTML"
      hx-trigger="every 5s"
      hx-disinherit="*"
    >
      <div class="title">
        <h2 id="checklist-title" safe>{`First steps: ${steps.length - openSteps.length} of ${steps.length} done`}</h2>
        {role !== 'viewer' && (
          <Form visit={context} action={`${PATH}/dismiss`}>
            <button class="small">Dismiss checklist</button>
          </Form>
        )}
      </div>
      <ol>
        {steps.map(([step, { name, path, hint }]) => (
          <li class={done[step] ? 'done' : undefined}>
            <span class="hidden">{done[step] ? 'Done: ' : 'To do: '}</span>
            {done[step] ? (
              <span safe>{name}</span>
            ) : (
              <a href={`/dashboard${path}`} safe>
                {name}
              </a>
            )}
            {!done[step] && (
              <span class="hint" safe>
                {hint}
              </span>
            )}
          </li>
        ))}
      </ol>
      {done.domain && !done.email && <TestEmailButton context={context} />}
    </section>
  );
}

/** Sends a test email to the user. Shown to members and owners. */
export function TestEmailButton({ context }: { context: Context }): Html {
  if (context.role === 'viewer') return <></>;
  return (
    <Form visit={context} action={`${PATH}/test-email`}>
      <input type="hidden" name="request_id" value={randomUUID()} />
      <button class="primary long" safe>{`Send test email to ${context.user.email}`}</button>
    </Form>
  );
}

const show = page(Type.Object({}), async (context) => (
  <Layout context={context} title="First steps">
    <Checklist context={context} />
    <p class="hint">The overview shows the first steps until all are done or a member dismisses them.</p>
  </Layout>
));

const dismiss = buttonAction((context) => ({
  action: 'checklist.dismiss',
  run: () => dismissFirstSteps(context.pool, context.organization.id),
  target: context.organization.id,
  next: '/dashboard',
  flash: 'The checklist is dismissed.',
}));

const sendTest = action(RequestIdForm, {
  run: (context, { request_id: requestId }) =>
    act(context, {
      action: 'emails.send',
      run: () => sendTestEmail(context.deps, context.organization.id, context.user.email, requestId),
      target: ({ id }) => id,
      detail: { test: true },
      next: ({ id }) =>
        new Redirect(`/dashboard/emails/${id}`, { flash: `Test email to ${context.user.email} accepted.` }),
    }),
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', show],
  ['POST', `${PATH}/dismiss`, 'member', dismiss],
  ['POST', `${PATH}/test-email`, 'member', sendTest],
];
