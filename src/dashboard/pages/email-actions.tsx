import { Type } from 'typebox';
import { isSuppressedBy } from '../../domain/email/suppression.ts';
import { requireFound } from '../../domain/errors.ts';
import { cancelEmail, rescheduleEmail } from '../../intake/emails.ts';
import { resendEmail } from '../../intake/resend.ts';
import { findEmail } from '../../store/emails/emails.ts';
import { readClock } from '../../store/postgres/clock.ts';
import { act, buttonAction, RequestIdForm } from '../act.ts';
import { action, type Context, idOf, type PageRow, Redirect } from '../page.ts';
import { emailPage } from './email.tsx';
import { UNSUPPRESSED_DELAY_SECONDS } from './email-buttons.tsx';
import { suppressionsOf } from './email-suppression.tsx';
import { PATH } from './emails.tsx';
import { rescheduleAction } from './reschedule.tsx';
import { removeEntry } from './suppressions.tsx';

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

const ResendForm = Type.Object({
  ...RequestIdForm.properties,
  /** First removes the recipients from the suppression list. */
  unsuppress: Type.Optional(Type.Boolean()),
});

const resend = action(ResendForm, {
  run: async (context, { request_id, unsuppress = false }) => {
    const time = unsuppress ? await unsuppressRecipients(context) : null;
    return act(context, {
      action: 'emails.send',
      run: () => resendEmail(context.deps, context.organization.id, { id: idOf(context) }, request_id, time),
      target: ({ id }) => id,
      detail: { resend_of: idOf(context) },
      next: ({ id }) => new Redirect(`${PATH}/${id}`, { flash: time === null ? RESENT : UNSUPPRESSED }),
    });
  },
});

const RESENT = 'Email resent. This is the new one.';
const UNSUPPRESSED = `Suppressions removed. This is the new email, which is sent in ${UNSUPPRESSED_DELAY_SECONDS} seconds.`;

/** Removes the suppressions that concern an email. @returns when it can be sent, in the API's format */
async function unsuppressRecipients(context: Context): Promise<string> {
  const { pool, organization, deps } = context;
  const email = requireFound(await findEmail(pool, deps.contents, organization.id, idOf(context)), 'email');
  for (const entry of await suppressionsOf(context, email)) {
    if (isSuppressedBy(entry, email)) await removeEntry(context, entry, PATH);
  }
  return new Date((await readClock(pool)).getTime() + UNSUPPRESSED_DELAY_SECONDS * 1_000).toISOString();
}

export const rows: readonly PageRow[] = [
  ['POST', `${PATH}/:id/reschedule`, 'member', reschedule],
  ['POST', `${PATH}/:id/cancel`, 'member', cancel],
  ['POST', `${PATH}/:id/again`, 'member', resend],
];
