import { Type } from 'typebox';
import { EMAIL_STATUSES, type Tag } from '../../domain/email/email.ts';
import { TAGS } from '../../domain/limits.ts';
import { parseTag } from '../../domain/email/tag-filter.ts';
import { listEmails } from '../../store/emails/lists.ts';
import type { EmailSummary } from '../../store/emails/summary.ts';
import { findVerifiedDomain } from '../../store/outbox/backlog.ts';
import { curl, Empty, LinkHeading, Pager, StatusBadge, Sub, Table, Time, TimeCell } from '../elements.tsx';
import { field, Filters, optionsOf, select } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { isMoving, Live } from '../live.tsx';
import { type Context, type Filled, type Html, page, type PageRow, Reply } from '../page.ts';
import { textToPlace } from '../places.ts';

export const PATH = '/dashboard/emails';
const EMAILS = 50;

const Query = Type.Object({
  status: Type.Optional(Type.Enum([...EMAIL_STATUSES])),
  tag: Type.Optional(Type.Array(Type.String())),
  batch_id: Type.Optional(Type.String({ maxLength: 64 })),
  cursor: Type.Optional(Type.String()),
});

const list = page(Query, async (context) => {
  const { pool, organization, query, given, problems } = context;
  const { status = null, batch_id = null, cursor } = query;
  // A URL has a parameter for each tag; the field contains all of them.
  const written = (query.tag ?? []).flatMap((text) => text.split(/[\s,]+/).filter((tag) => tag !== ''));
  const tags = written.map(parseTag);
  const tagProblem = problemOf(tags);
  const filled: Filled = {
    given: { ...given, tag: written.join(' ') },
    problems: { ...problems, ...(tagProblem !== undefined && { tag: tagProblem }) },
  };
  const filters = { status, batch_id, tags: tags.filter((tag) => tag !== undefined) };
  const isValid = Object.keys(filled.problems).length === 0;
  const { emails, next } = isValid
    ? await listEmails(pool, organization.id, filters, textToPlace(cursor), EMAILS)
    : { emails: [], next: null };
  const isEmpty = status === null && batch_id === null && written.length === 0 && cursor === undefined;
  const shown = (
    <Layout context={context} title="Emails">
      <Filters visit={context}>
        {select(filled, 'status', 'Status', optionsOf(EMAIL_STATUSES, 'Any'))}
        {field(filled, 'tag', 'Tags', { placeholder: 'kind:receipt plan:pro', autocomplete: 'off' })}
        {field(filled, 'batch_id', 'Batch', { placeholder: 'bt_…', autocomplete: 'off' })}
      </Filters>
      <Live visit={context} moves={emails.some((email) => isMoving(email))}>
        {emails.length === 0 && isEmpty && isValid ? (
          <Empty title="No email yet" command={curl(context, 'POST', '/v1/emails', await exampleEmail(context))}>
            <p>Send one from a domain of this organization, and watch it here.</p>
          </Empty>
        ) : (
          emailTable(emails, next !== null, isValid)
        )}
        <Pager visit={context} next={next} />
      </Live>
    </Layout>
  );
  return isValid ? shown : new Reply(shown, { status: 422 });
});

export const rows: readonly PageRow[] = [['GET', PATH, 'viewer', list]];

/** An email to the user, from a verified domain if there is one. */
export async function exampleEmail({ pool, organization, user }: Context): Promise<Record<string, string>> {
  const domain = (await findVerifiedDomain(pool, organization.id)) ?? 'your-domain.example';
  return { from: `hello@${domain}`, to: user.email, subject: 'It works', text: 'The first email.' };
}

function problemOf(tags: readonly (Tag | undefined)[]): string | undefined {
  if (tags.includes(undefined))
    return 'must be name:value, of letters, digits, _ and -; several with blanks between them';
  return tags.length > TAGS ? `must be at most ${TAGS} tags` : undefined;
}

function emailTable(emails: readonly EmailSummary[], hasMore: boolean, isValid: boolean): Html {
  if (!isValid) return '';
  if (emails.length === 0) {
    const where = hasMore ? 'among the newest emails. There are older ones to look at.' : 'with these filters.';
    return <p class="muted" safe>{`Nothing was found ${where}`}</p>;
  }
  return <EmailRows emails={emails} />;
}

export function EmailRows({ emails }: { emails: readonly EmailSummary[] }): Html {
  return (
    <Table layout="emails" caption="Emails, newest first" columns={['Status', 'To', 'Subject', 'Tags', 'Accepted']}>
      {emails.map((email) => (
        <tr>
          <td>
            <StatusBadge status={email.status} />
            {email.bounce_reason !== null && <Sub text={email.bounce_reason.replaceAll('_', ' ')} />}
            {email.status === 'scheduled' && (
              <span class="sub">
                for <Time at={email.scheduled_at} short />
              </span>
            )}
          </td>
          <td>
            <span safe>{email.to[0] ?? ''}</span>
            {email.to.length > 1 && <Sub text={`and ${email.to.length - 1} more`} />}
          </td>
          <LinkHeading
            href={`${PATH}/${email.id}`}
            id={`open-${email.id}`}
            text={email.subject || '(no subject)'}
            title={`${email.subject || '(no subject)'}, to ${email.to.join(', ')}`}
          />
          <td>
            <TagLinks tags={email.tags} />
          </td>
          <TimeCell at={email.created_at} short />
        </tr>
      ))}
    </Table>
  );
}

/** Tags, each with a link to all emails that have it. */
export function TagLinks({ tags }: { tags: readonly Tag[] }): Html {
  return (
    <span class="tags">
      {tags.map(({ name, value }) => (
        <a class="tag" href={`${PATH}?tag=${encodeURIComponent(`${name}:${value}`)}`} title={`${name}:${value}`} safe>
          {`${name}:${value}`}
        </a>
      ))}
    </span>
  );
}
