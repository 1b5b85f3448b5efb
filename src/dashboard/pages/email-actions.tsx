import { Type } from 'typebox';
import { cancelEmail, rescheduleEmail } from '../../intake/emails.ts';
import { resendEmail } from '../../intake/resend.ts';
import { act, buttonAction } from '../act.ts';
import { timeZoneOf, zonedInstant, zonedWords } from '../instants.ts';
import { action, idOf, type PageRow, Redirect } from '../page.ts';
import { emailPage } from './email.tsx';
import { PATH } from './emails.tsx';

const reschedule = action(Type.Object({ scheduled_at: Type.String(), time_zone: Type.String() }), {
  again: (context, filled) => emailPage(context, filled),
  run: async (context, { scheduled_at: local, time_zone: zone }) => {
    const id = idOf(context);
    const timeZone = timeZoneOf(zone.trim(), 'time_zone');
    const scheduledAt = zonedInstant(local, timeZone, 'scheduled_at');
    return act(context, {
      action: 'emails.reschedule',
      run: () => rescheduleEmail(context.deps, context.organization.id, id, scheduledAt),
      target: id,
      detail: { scheduled_at: scheduledAt },
      next: `${PATH}/${id}`,
      flash: `Rescheduled to ${zonedWords(scheduledAt, timeZone)}.`,
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
      run: () => resendEmail(context.deps, context.organization.id, idOf(context), request_id),
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
