import { Type } from 'typebox';
import { setUserTimeZone } from '../../store/accounts/users.ts';
import { act } from '../act.ts';
import { BLANK, Form, FormProblem, timeZoneField } from '../form-elements.tsx';
import { timeZoneOf } from '../instants.ts';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, page, type PageRow } from '../page.ts';

const PATH = '/dashboard/account/time-zone';
const CRUMBS = [{ path: '/dashboard/account', name: 'Your account' }];

const show = page(Type.Object({}), async (context) => zonePage(context, BLANK));

const change = action(Type.Object({ time_zone: Type.Optional(Type.String()) }), {
  renderForm: zonePage,
  run: (context, { time_zone: text }) => {
    const timeZone = text === undefined ? null : timeZoneOf(text.trim());
    return act(context, {
      action: 'account.time-zone',
      run: () => setUserTimeZone(context.pool, context.user.id, timeZone),
      target: context.user.id,
      detail: { time_zone: timeZone },
      next: PATH,
      flash: timeZone === null ? "Times are in your browser's time zone." : `Times are in ${timeZone}.`,
    });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', show],
  ['POST', PATH, 'viewer', change],
];

function zonePage(context: Context, formState: FormState): Html {
  return (
    <Layout context={context} title="Time zone" crumbs={CRUMBS}>
      <Form visit={context} action={PATH} class="card">
        <FormProblem formState={formState} />
        {timeZoneField(formState, context.session.timeZone ?? '', {
          hint: "A name such as Europe/Berlin, or UTC. Leave empty for your browser's time zone; without JavaScript, times are in UTC.",
        })}
        <button class="primary">Save time zone</button>
      </Form>
    </Layout>
  );
}
