import { randomUUID } from 'node:crypto';
import type { Email } from '../../store/emails/emails.ts';
import { Section } from '../elements.tsx';
import { confirm, field, Form, FormProblem } from '../form-elements.tsx';
import type { Context, Filled, Html } from '../page.ts';
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

/** Browsers post a time without its offset, which is a second field; a script sets it to the reader's. */
export function rescheduleForm(context: Context, email: Email, filled: Filled): Html {
  return (
    <Section title="Reschedule">
      <Form visit={context} action={`${PATH}/${email.id}/reschedule`} class="card local-time">
        <FormProblem filled={filled} />
        {field(filled, 'scheduled_at', 'Send at', {
          type: 'datetime-local',
          value: (email.scheduled_at ?? '').slice(0, 16),
          required: true,
        })}
        {field(filled, 'offset', 'Time zone', {
          value: '+00:00',
          hint: 'As an offset from UTC: +02:00 is Berlin in summer, -05:00 New York in winter',
          required: true,
        })}
        <button class="primary">Reschedule</button>
      </Form>
    </Section>
  );
}
