import { Type } from 'typebox';
import { listEmails } from '../../store/email-lists.ts';
import { curl, Empty, StatusBadge, Table, Time } from '../elements.tsx';
import { Layout } from '../layout.tsx';
import { page, type PageRow } from '../page.ts';

/** Emails that the page shows. */
const NEWEST = 10;

const EVERY = { tags: [], status: null, batch_id: null } as const;

const overview = page(Type.Object({}), async (context) => {
  const { emails } = await listEmails(context.pool, context.organization.id, EVERY, null, NEWEST);
  const example = {
    from: 'hello@your-domain.example',
    to: 'you@example.com',
    subject: 'It works',
    text: 'The first email.',
  };
  return (
    <Layout context={context} title="Overview">
      {emails.length === 0 ? (
        <Empty title="No email yet" command={curl(context, 'POST', '/v1/emails', example)}>
          <p>
            Send one from a <a href="/dashboard/domains">domain</a> of this organization with an{' '}
            <a href="/dashboard/keys">API key</a>, and watch it here.
          </p>
        </Empty>
      ) : (
        <section>
          <h2>Newest emails</h2>
          <Table caption="Newest emails" columns={['Status', 'To', 'Subject', 'Created']}>
            {emails.map(({ status, to, subject, created_at: createdAt }) => (
              <tr>
                <td>
                  <StatusBadge status={status} />
                </td>
                <td safe>{to.join(', ')}</td>
                <td safe>{subject}</td>
                <td>
                  <Time at={createdAt} />
                </td>
              </tr>
            ))}
          </Table>
        </section>
      )}
    </Layout>
  );
});

export const rows: readonly PageRow[] = [['GET', '/dashboard', 'viewer', overview]];
