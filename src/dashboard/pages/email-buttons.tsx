import { randomUUID } from 'node:crypto';
import type { Email } from '../../store/emails/emails.ts';
import { confirm } from '../form-elements.tsx';
import type { Context, Html } from '../page.ts';
import { PATH } from './emails.tsx';

interface Props {
  readonly context: Context;
  readonly email: Email;
  readonly mayResend: boolean;
}

export function EmailButtons({ context, email, mayResend }: Props): Html {
  const { id, status, to, cc, bcc } = email;
  const count = [to, cc ?? [], bcc ?? []].flat().length;
  return (
    <>
      {status === 'scheduled' &&
        confirm(context, 'Cancel email', {
          action: `${PATH}/${id}/cancel`,
          id: 'cancel-email',
          question:
            "Cancel this email? It won't be sent. You can resend it while its content and attachments are stored.",
          keep: 'Keep scheduled',
        })}
      {mayResend &&
        confirm(context, 'Resend', {
          action: `${PATH}/${id}/again`,
          id: 'send-again',
          fields: { request_id: randomUUID() },
          question: `A new email of the same content goes to ${count === 1 ? 'its recipient' : `all ${count} recipients`} immediately.`,
        })}
    </>
  );
}
