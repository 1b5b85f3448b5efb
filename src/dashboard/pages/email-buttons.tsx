import { randomUUID } from 'node:crypto';
import { bareAddress } from '../../domain/email/address.ts';
import type { Email } from '../../store/emails/emails.ts';
import type { Suppression } from '../../store/suppressions/suppressions.ts';
import { confirm } from '../form-elements.tsx';
import type { Context, Html } from '../page.ts';
import { ORIGINS } from './email-suppression.tsx';
import { PATH } from './emails.tsx';

/** The provider's own list is cleared in the background, which usually takes seconds. */
export const UNSUPPRESSED_DELAY_SECONDS = 30;

interface Props {
  readonly context: Context;
  readonly email: Email;
  readonly mayResend: boolean;
  /** The entries of the suppression list that concern this email. */
  readonly applied: readonly Suppression[];
}

export function EmailButtons({ context, email, mayResend, applied }: Props): Html {
  const { id, status } = email;
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
      {mayResend && resendButton(context, email, applied)}
    </>
  );
}

/** Asks before a resend. For an email that would not be sent to anyone, only the removal of its suppressions is offered. */
function resendButton(context: Context, email: Email, applied: readonly Suppression[]): Html {
  const { to, cc, bcc } = email;
  const count = [to, cc ?? [], bcc ?? []].flat().length;
  const listed = new Set(applied.map((entry) => entry.email));
  const isWhollySuppressed = to.every((address) => listed.has(bareAddress(address) ?? ''));
  const shared = { action: `${PATH}/${email.id}/again`, id: 'send-again' };
  const fields = { request_id: randomUUID() };
  const goes = `A new email of the same content goes to ${count === 1 ? 'its recipient' : `all ${count} recipients`}`;
  if (listed.size === 0) return confirm(context, 'Resend', { ...shared, fields, question: `${goes} immediately.` });

  const both = `Remove suppression${listed.size === 1 ? '' : 's'} and resend`;
  const removal = `${both}: ${goes} in ${UNSUPPRESSED_DELAY_SECONDS} seconds. The provider may keep an entry of its own, as after a complaint.`;
  if (isWhollySuppressed) {
    const who = to.length === 1 ? suppressedWords(applied) : 'Every address in To is on the suppression list';
    const question = `${who}; it will not be sent. ${removal}`;
    return confirm(context, both, { ...shared, fields: { ...fields, unsuppress: 'true' }, question });
  }
  const question = `${suppressedWords(applied)}; it will not be sent to ${listed.size === 1 ? 'this address' : 'these'}. ${removal}`;
  return confirm(context, 'Resend', {
    ...shared,
    fields,
    question,
    other: { label: both, name: 'unsuppress', value: 'true' },
  });
}

function suppressedWords(applied: readonly Suppression[]): string {
  const [first, ...others] = [...new Map(applied.toReversed().map((entry) => [entry.email, entry])).values()];
  if (!first) return '';
  return others.length === 0
    ? `${first.email} is on the suppression list, because ${ORIGINS[first.origin]}`
    : `${first.email} and ${others.length} more are on the suppression list`;
}
