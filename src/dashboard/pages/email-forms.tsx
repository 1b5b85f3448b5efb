import { randomUUID } from 'node:crypto';
import type { Email } from '../../store/emails/emails.ts';
import { Section } from '../elements.tsx';
import { confirm, field, Form, FormProblem, timeZoneField } from '../form-elements.tsx';
import { zonedValue } from '../instants.ts';
import { type Context, type Filled, type Html, zoneOf } from '../page.ts';
import { PATH } from './emails.tsx';

export function EmailButtons({ context, email }: { context: Context; email: Email }): Html {
  const { id, status, to, cc, bcc } = email;
  const count = [to, cc ?? [], bcc ?? []].flat().length;
  return (
    <>
      {status === 'scheduled' &&
        confirm(context, 'Cancel email', {
          action: `${PATH}/${id}/cancel`,
          id: 'cancel-email',
          question: "Cancel this email? It won't be sent. You can resend it later.",
          keep: 'Keep scheduled',
        })}
      {confirm(context, 'Resend', {
        action: `${PATH}/${id}/again`,
        id: 'send-again',
        fields: { request_id: randomUUID() },
        question: `A new email of the same content goes to ${count === 1 ? 'its recipient' : `all ${count} recipients`} immediately.`,
      })}
    </>
  );
}

/** A time field with the name of its time zone: the user's, otherwise the browser's, which a script fills in. */
export function rescheduleForm(context: Context, email: Email, filled: Filled): Html {
  const at = email.scheduled_at ?? new Date().toISOString();
  const timeZone = zoneOf(context);
  const isBlank = Object.keys(filled.given).length === 0;
  return (
    <Section title="Reschedule">
      <Form
        visit={context}
        action={`${PATH}/${email.id}/reschedule`}
        class="card"
        at={isBlank && context.session.timeZone === null ? at : undefined}
      >
        <FormProblem filled={filled} />
        {field(filled, 'scheduled_at', 'Send at', {
          type: 'datetime-local',
          value: zonedValue(at, timeZone),
          required: true,
        })}
        {timeZoneField(filled, timeZone, { hint: 'A name such as Europe/Berlin, or UTC.', required: true })}
        <button class="primary">Reschedule</button>
      </Form>
    </Section>
  );
}
