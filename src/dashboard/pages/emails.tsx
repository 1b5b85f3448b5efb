import type { Tag } from '../../domain/email/email.ts';
import { findExistingTargets } from '../../store/accounts/audit.ts';
import { listEmails } from '../../store/emails/lists.ts';
import type { EmailSummary } from '../../store/emails/summary.ts';
import { findVerifiedDomain } from '../../store/outbox/backlog.ts';
import { curl, Empty, inWords, LinkHeading, Pager, StatusBadge, Sub, Table, Time, TimeCell } from '../elements.tsx';
import { Layout } from '../layout.tsx';
import { Live, mayChangeSoon, mayListChangeSoon } from '../live.tsx';
import { type Context, type Html, page, type PageRow, Redirect, Reply } from '../page.ts';
import { parseCursor, ROWS_PER_PAGE } from '../cursors.ts';
import { isTargetId, targetPath } from '../targets.ts';
import { download } from './email-download.ts';
import { EmailFilterForm, filterQuery, Query, readFilters } from './email-filters.tsx';
import { subjectText } from './message-parts.tsx';

export const PATH = '/dashboard/emails';

const list = page(Query, async (context) => {
  const { pool, organization, query, input } = context;
  const opened = await pathOfId(context, query.q?.trim() ?? '');
  if (opened !== undefined) return new Redirect(opened);
  const { filters, formState, isValid } = readFilters(context);
  const { rows: emails, next } = isValid
    ? await listEmails(pool, organization.id, filters, parseCursor(query.cursor), ROWS_PER_PAGE)
    : { rows: [], next: null };
  const isFirst = query.cursor === undefined;
  const isEmpty = isFirst && filterQuery(input) === '';
  const shown = (
    <Layout
      context={context}
      title="Emails"
      actions={
        isValid && (
          <a class="button" href={`${PATH}/download${filterQuery(input)}`}>
            Download as CSV
          </a>
        )
      }
    >
      <EmailFilterForm context={context} formState={formState} />
      <Live path={context.url} shouldRefresh={isValid && mayListChangeSoon(query.cursor, emails, mayChangeSoon)}>
        {emails.length === 0 && isEmpty && isValid ? (
          <Empty title="No emails yet" command={curl(context, '/v1/emails', await exampleEmail(context))}>
            <p>
              Send one from a verified <a href="/dashboard/domains">domain</a> of this organization with an{' '}
              <a href="/dashboard/keys">API key</a>, and watch it here.
            </p>
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

/** Returns the page of an object, such as an email or a request, if the search text is its id. */
async function pathOfId({ pool, organization }: Context, text: string): Promise<string | undefined> {
  if (!isTargetId(text)) return undefined;
  return targetPath(text, await findExistingTargets(pool, organization.id, [text]));
}

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/download`, 'viewer', download],
];

/** Returns an example request: an email to the user, from a verified domain if there is one. */
export async function exampleEmail({ pool, organization, user }: Context): Promise<Record<string, string>> {
  return exampleFrom(await findVerifiedDomain(pool, organization.id), user.email);
}

export function exampleFrom(domain: string | undefined, to: string): Record<string, string> {
  return { from: `hello@${domain ?? 'your-domain.example'}`, to, subject: 'It works', text: 'The first email.' };
}

function emailTable(emails: readonly EmailSummary[], hasMore: boolean, isValid: boolean): Html {
  if (!isValid) return '';
  if (emails.length === 0) {
    return <p class="muted" safe>{`No emails ${noneFound(hasMore)}`}</p>;
  }
  return <EmailRows emails={emails} />;
}

/** The end of a sentence about an empty page; with `hasMore`, later pages may have rows. */
export function noneFound(hasMore: boolean): string {
  return hasMore ? 'found among the newest. Older ones may match: continue with “Older”.' : 'match these filters.';
}

export function EmailRows({ emails }: { emails: readonly EmailSummary[] }): Html {
  return (
    <Table layout="emails" caption="Emails, newest first" columns={['Status', 'To', 'Subject', 'Tags', 'Accepted']}>
      {emails.map((email) => (
        <tr>
          <td>
            <StatusBadge status={email.status} />
            {email.bounce_reason !== null && <Sub text={inWords(email.bounce_reason)} />}
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
            text={subjectText(email.subject)}
            title={`${subjectText(email.subject)}, to ${email.to.join(', ')}`}
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

/** Tags, each with a link to all emails with that tag. */
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
