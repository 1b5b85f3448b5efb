import { Type } from 'typebox';
import { parseInstant, SCHEDULE_PROBLEMS } from '../../domain/instant.ts';
import { ServiceError } from '../../domain/errors.ts';
import { cancelEmail, rescheduleEmail } from '../../intake/emails.ts';
import { sendAgain } from '../../intake/send-again.ts';
import { act, buttonAction } from '../act.ts';
import { action, idOf, type PageRow, Redirect } from '../page.ts';
import { emailPage } from './email.tsx';
import { PATH } from './emails.tsx';

const reschedule = action(Type.Object({ scheduled_at: Type.String(), offset: Type.String() }), {
  again: (context, filled) => emailPage(context, filled),
  run: async (context, { scheduled_at: local, offset }) => {
    const id = idOf(context);
    const time = parseInstant(`${local}${offset}`);
    if (!time) throw new ServiceError('validation_error', SCHEDULE_PROBLEMS.form, 'scheduled_at');
    return act(context, {
      action: 'emails.reschedule',
      run: () => rescheduleEmail(context.deps, context.organization.id, id, time.toISOString()),
      target: id,
      detail: { scheduled_at: time.toISOString() },
      next: `${PATH}/${id}`,
      flash: `Rescheduled to ${local.replace('T', ' ')} (UTC${offset}).`,
    });
  },
});

const cancel = buttonAction((context) => ({
  action: 'emails.cancel',
  run: () => cancelEmail(context.deps, context.organization.id, idOf(context)),
  next: `${PATH}/${idOf(context)}`,
  flash: 'Email canceled.',
}));

const again = action(Type.Object({ request_id: Type.String({ minLength: 1, maxLength: 100 }) }), {
  run: (context, { request_id }) =>
    act(context, {
      action: 'emails.send',
      run: () => sendAgain(context.deps, context.organization.id, idOf(context), request_id),
      target: ({ id }) => id,
      detail: { again: idOf(context) },
      next: ({ id }) => new Redirect(`${PATH}/${id}`, { flash: 'Email resent. This is the new one.' }),
    }),
});

export const rows: readonly PageRow[] = [
  ['POST', `${PATH}/:id/reschedule`, 'member', reschedule],
  ['POST', `${PATH}/:id/cancel`, 'member', cancel],
  ['POST', `${PATH}/:id/again`, 'member', again],
];
