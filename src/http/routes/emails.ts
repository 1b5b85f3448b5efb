import type { Static } from 'typebox';
import type { AttachmentRequest } from '../../domain/email/attachments.ts';
import type { EmailRequest } from '../../domain/email/email.ts';
import { ServiceError } from '../../domain/errors.ts';
import { acceptEmail, cancelEmail, type IntakeDeps, rescheduleEmail } from '../../intake/emails.ts';
import { findEmail } from '../../store/emails/emails.ts';
import { callerOf, changerOf } from '../plugins/auth.ts';
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

const tags = ['Emails'];

export function sendEmail(deps: IntakeDeps) {
  return route(
    {
      tags,
      operationId: 'sendEmail',
      summary: 'Send an email',
      description: 'Accepts one email for delivery, immediately or at `scheduled_at`.',
      headers: IdempotencyHeader,
      body: SendEmailBody,
      response: { 202: AcceptedEmail },
    },
    async (request) => {
      const { org_id: orgId, domain_ids: domainIds } = callerOf(request);
      const { id, status, created_at, scheduled_at } = await acceptEmail(
        deps,
        { orgId, domainIds },
        toRequest(request.body),
        attachmentsOf(request.body),
        request.idempotency,
      );
      return { id, status, created_at, scheduled_at };
    },
  );
}

function attachmentsOf({ attachments }: Static<typeof SendEmailBody>): AttachmentRequest[] {
  return (attachments ?? []).map((file) => ({
    filename: file.filename,
    content: file.content ?? null,
    path: file.path ?? null,
    content_type: file.content_type ?? null,
    content_id: file.content_id ?? null,
  }));
}

/** Fills in the defaults of a valid body. Attachments are handled separately. */
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

export function getEmail(deps: IntakeDeps) {
  return route(
    {
      tags,
      operationId: 'getEmail',
      summary: 'Get an email',
      description: 'One email with its status and timeline.',
      params: EmailParams,
      response: { 200: EmailBody },
    },
    async (request) => {
      const email = await findEmail(deps.pool, deps.contents, callerOf(request).org_id, request.params.id);
      if (!email) throw new ServiceError('not_found', 'there is no email with this id');
      return email;
    },
  );
}

export function reschedule(deps: IntakeDeps) {
  return route(
    {
      tags,
      operationId: 'rescheduleEmail',
      summary: 'Reschedule an email',
      description: 'Gives an email that is still scheduled another time, earlier or later, as often as you like.',
      params: EmailParams,
      body: RescheduleBody,
      response: { 200: Rescheduled },
    },
    (request) => {
      const { params, body } = request;
      return rescheduleEmail(deps, callerOf(request).org_id, params.id, body.scheduled_at, changerOf(request));
    },
  );
}

export function cancel(deps: IntakeDeps) {
  return route(
    {
      tags,
      operationId: 'cancelEmail',
      summary: 'Cancel an email',
      description: 'Calls an email back that is still scheduled. It stays retrievable and listable.',
      params: EmailParams,
      response: { 200: Canceled },
    },
    (request) => cancelEmail(deps, callerOf(request).org_id, request.params.id, changerOf(request)),
  );
}
