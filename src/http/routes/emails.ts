import type { Static } from 'typebox';
import type { AttachmentRequest } from '../../domain/email/attachments.ts';
import type { EmailRequest } from '../../domain/email/email.ts';
import { requireFound } from '../../domain/errors.ts';
import { acceptEmail, cancelEmail, rescheduleEmail } from '../../intake/emails.ts';
import { findEmail } from '../../store/emails/emails.ts';
import { changerOf } from '../plugins/auth.ts';
import { route } from '../route.ts';
import { IdempotencyHeader } from '../schemas/common.ts';
import {
  AcceptedEmail,
  Canceled,
  EmailBody,
  EmailParams,
  RescheduleBody,
  Rescheduled,
  SendEmailBody,
} from '../schemas/emails.ts';

export const sendEmail = route('sendEmail', 'Send an email', {
  description: 'Accepts one email for delivery, immediately or at `scheduled_at`.',
  headers: IdempotencyHeader,
  body: SendEmailBody,
  response: { 202: AcceptedEmail },
  handler: (deps, request) => {
    const { body, idempotency } = request;
    return acceptEmail(deps, changerOf(request), toRequest(body), { attachments: attachmentsOf(body), idempotency });
  },
});

function attachmentsOf({ attachments }: Static<typeof SendEmailBody>): AttachmentRequest[] {
  const absent = { content: null, path: null, content_type: null, content_id: null };
  return (attachments ?? []).map((file) => ({ ...absent, ...file }));
}

/** Sets the defaults of a valid body. Attachments are handled separately. */
export function toRequest(body: Omit<Static<typeof SendEmailBody>, 'attachments'>): EmailRequest {
  const list = (addresses: string | string[] | null | undefined) => (addresses == null ? null : [addresses].flat());
  const replyTo = list(body.reply_to);
  return {
    from: body.from,
    to: [body.to].flat(),
    cc: list(body.cc),
    bcc: list(body.bcc),
    reply_to: replyTo?.length ? replyTo : null,
    subject: body.subject,
    html: body.html ?? null,
    text: body.text ?? null,
    marketing: body.marketing ?? false,
    tags: body.tags ?? [],
    headers: body.headers ?? {},
    scheduled_at: body.scheduled_at ?? null,
  };
}

export const getEmail = route('getEmail', 'Get an email', {
  description: 'One email with its status and timeline.',
  params: EmailParams,
  response: { 200: EmailBody },
  handler: async ({ pool, contents }, { orgId, params }) =>
    requireFound(await findEmail(pool, contents, orgId, params.id), 'email'),
});

export const reschedule = route('rescheduleEmail', 'Reschedule an email', {
  description:
    'Changes the time of an email that is still scheduled, to an earlier or later one, as often as you like.',
  params: EmailParams,
  body: RescheduleBody,
  response: { 200: Rescheduled },
  handler: (deps, request) =>
    rescheduleEmail(deps, request.orgId, request.params.id, request.body.scheduled_at, changerOf(request)),
});

export const cancel = route('cancelEmail', 'Cancel an email', {
  description: 'Cancels an email that is still scheduled. It can still be retrieved and listed.',
  params: EmailParams,
  response: { 200: Canceled },
  handler: (deps, request) => cancelEmail(deps, request.orgId, request.params.id, changerOf(request)),
});
