import { cancelEmail, rescheduleEmail } from '../../intake/emails.ts';
import { resendEmail } from '../../intake/resend.ts';
import { act, buttonAction, RequestIdForm } from '../act.ts';
import { action, idOf, type PageRow, Redirect } from '../page.ts';
import { emailPage } from './email.tsx';
import { PATH } from './emails.tsx';
import { rescheduleAction } from './reschedule.tsx';

const reschedule = rescheduleAction({
  name: 'emails.reschedule',
  list: PATH,
  renderForm: emailPage,
  reschedule: ({ deps, organization }, id, scheduledAt) => rescheduleEmail(deps, organization.id, id, scheduledAt),
});

const cancel = buttonAction((context) => ({
  action: 'emails.cancel',
  run: () => cancelEmail(context.deps, context.organization.id, idOf(context)),
  next: `${PATH}/${idOf(context)}`,
  flash: 'Email canceled.',
}));

const resend = action(RequestIdForm, {
  run: (context, { request_id }) =>
    act(context, {
      action: 'emails.send',
      run: () => resendEmail(context.deps, context.organization.id, { id: idOf(context) }, request_id),
      target: ({ id }) => id,
      detail: { resend_of: idOf(context) },
      next: ({ id }) => new Redirect(`${PATH}/${id}`, { flash: 'Email resent. This is the new one.' }),
    }),
});

export const rows: readonly PageRow[] = [
  ['POST', `${PATH}/:id/reschedule`, 'member', reschedule],
  ['POST', `${PATH}/:id/cancel`, 'member', cancel],
  ['POST', `${PATH}/:id/again`, 'member', resend],
];
