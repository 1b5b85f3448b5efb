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
        confirm(context, 'Cancel sending', {
          action: `${PATH}/${id}/cancel`,
          id: 'cancel-email',
          question: 'It will not be sent. What was canceled cannot be taken back, only sent again.',
        })}
      {confirm(context, 'Send again', {
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
    <Section title="Another time">
      <Form visit={context} action={`${PATH}/${email.id}/reschedule`} class="card local-time">
        <FormProblem filled={filled} />
        {field(filled, 'scheduled_at', 'Send it at', {
          type: 'datetime-local',
          value: (email.scheduled_at ?? '').slice(0, 16),
          required: true,
        })}
        {field(filled, 'offset', 'UTC offset of that time', {
          value: '+00:00',
          hint: '+00:00 is UTC, +02:00 Berlin in summer, -05:00 New York in winter',
          required: true,
        })}
        <button class="primary">Reschedule</button>
      </Form>
    </Section>
  );
}
