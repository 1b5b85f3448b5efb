import { Type } from 'typebox';
import { PENDING_STATUSES } from '../../domain/email/batch.ts';
import { EMAIL_STATUSES } from '../../domain/email/email.ts';
import { requireFound } from '../../domain/errors.ts';
import { cancelBatch } from '../../intake/batches.ts';
import { type Batch, findBatch, firstSubjects, listBatches } from '../../store/emails/batches.ts';
import { listEmails } from '../../store/emails/lists.ts';
import type { EmailSummary } from '../../store/emails/summary.ts';
import type { Db } from '../../store/postgres/pool.ts';
import { beginOf, STEP_MS } from '../../store/statistics/series.ts';
import { buttonAction } from '../act.ts';
import {
  Copy,
  curl,
  Empty,
  Facts,
  inWords,
  LinkHeading,
  NumberCell,
  Section,
  StatusBadge,
  StatusCell,
  Sub,
  Table,
  Text,
  Time,
  TimeCell,
} from '../elements.tsx';
import { confirm } from '../form-elements.tsx';
import { listPage } from '../list-page.tsx';
import { Layout } from '../layout.tsx';
import { Live } from '../live.tsx';
import { type Html, idOf, page, type PageRow, Redirect } from '../page.ts';
import type { Period } from '../periods.ts';
import { shareInWords } from '../rates.ts';
import { RateFigures, readFigures } from '../statistics.tsx';
import { EmailRows, exampleEmail } from './emails.tsx';
import { formatNumber } from '../../lib/text.ts';
import { subjectText } from './message-parts.tsx';

const PATH = '/dashboard/batches';

const list = listPage({
  title: 'Batches',
  caption: 'Batches, newest first',
  columns: ['Status', 'Batch', 'Progress', 'Emails', 'Accepted', 'Done'],
  limit: 30,
  read: async ({ pool, organization }, after, limit) => {
    const batches = await listBatches(pool, organization.id, after, limit);
    const ids = batches.map(({ id }) => id);
    const subjects = await firstSubjects(pool, organization.id, ids);
    return batches.map((batch) => ({ ...batch, name: nameOf(batch, subjects) }));
  },
  row: (batch) => (
    <tr>
      <StatusCell status={shownStatus(batch)} />
      <LinkHeading href={`${PATH}/${batch.id}`} id={`open-${batch.id}`} text={batch.name} sub={batch.id} />
      <td>
        <Progress batch={batch} />
      </td>
      <td>
        <p class="counts">
          {statusesOf(batch).map(([each, members]) => (
            <Text text={`${formatNumber(members)} ${inWords(each)}`} />
          ))}
        </p>
      </td>
      <TimeCell at={batch.created_at} short />
      <TimeCell at={batch.completed_at} short />
    </tr>
  ),
  mayChangeSoon: isUnderWay,
  empty: async (context) => (
    <Empty
      title="No batches yet"
      command={curl(context, '/v1/emails/batch', { emails: [await exampleEmail(context)] })}
    >
      <p>One request takes up to 10,000 emails, all or none, and their progress shows here.</p>
    </Empty>
  ),
});

const show = page(Type.Object({}), async (context) => {
  const batch = requireFound(await findBatch(context.pool, context.organization.id, idOf(context)), 'batch');
  const { id, total, counts } = batch;
  const { pool, organization } = context;
  const scheduled = counts.scheduled ?? 0;
  const [subjects, figures, failed] = await Promise.all([
    firstSubjects(pool, organization.id, [id]),
    readFigures(context, hourOf(batch.created_at), 'batch', id),
    listFailed(pool, organization.id, id),
  ]);
  return (
    <Layout
      context={context}
      title={nameOf(batch, subjects)}
      crumbs={[{ path: PATH, name: 'Batches' }]}
      actions={
        <>
          <a class="button" href={`/dashboard/emails?batch_id=${id}`}>
            Show its emails
          </a>
          <a class="button" href={`/dashboard/emails/download?batch_id=${id}`}>
            Download as CSV
          </a>
          {context.role !== 'viewer' &&
            scheduled > 0 &&
            confirm(context, 'Cancel sending', {
              action: `${PATH}/${id}/cancel`,
              id: 'cancel-batch',
              question: `${scheduled === 1 ? '1 email is' : `${formatNumber(scheduled)} emails are`} still scheduled and will not be sent. This cannot be undone.`,
              keep: 'Keep scheduled',
            })}
        </>
      }
    >
      <Live path={context.url} shouldRefresh={isUnderWay(batch)}>
        <Facts
          facts={[
            ['Status', <StatusBadge status={shownStatus(batch)} />],
            ['Emails', <Text text={formatNumber(total)} />],
            ['Accepted', <Time at={batch.created_at} />],
            ['Done', <Time at={batch.completed_at} />],
            ['Progress', <Progress batch={batch} />],
            ['ID', <Copy value={id} />],
          ]}
        />
        <Table caption="Emails of this batch by status" columns={['Status', ['Emails', 'number'], ['Share', 'number']]}>
          {statusesOf(batch).map(([status, members]) => (
            <tr>
              <StatusCell status={status} />
              <td class="number">
                <a
                  href={`/dashboard/emails?batch_id=${id}&status=${status}`}
                  aria-label={members === 1 ? '1 email: show it' : `${formatNumber(members)} emails: show them`}
                  safe
                >
                  {formatNumber(members)}
                </a>
              </td>
              <NumberCell text={shareInWords(members, total)} />
            </tr>
          ))}
        </Table>
        {figures.now.sent > 0 && <RateFigures figures={figures} before={null} />}
        {failed.length > 0 && (
          <Section title="Newest emails that failed">
            <EmailRows emails={failed} />
          </Section>
        )}
      </Live>
    </Layout>
  );
});

const cancel = buttonAction<{ id: string; canceled: number }>((context) => ({
  action: 'batches.cancel',
  run: () => cancelBatch(context.deps, context.organization.id, idOf(context)),
  detail: ({ canceled }) => ({ canceled }),
  next: ({ id, canceled }) =>
    new Redirect(`${PATH}/${id}`, {
      flash: `${formatNumber(canceled)} ${canceled === 1 ? 'email was' : 'emails were'} canceled.`,
    }),
}));

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/:id`, 'viewer', show, 'expensive'],
  ['POST', `${PATH}/:id/cancel`, 'member', cancel],
];

/** Returns the subject of a batch's first email as its name. */
function nameOf({ id, total }: Batch, subjects: ReadonlyMap<string, string>): string {
  const subject = subjects.get(id);
  return subject === undefined ? `Batch of ${formatNumber(total)}` : subjectText(subject);
}

/** Shows a batch as scheduled while all of its members are scheduled. */
function shownStatus({ total, status, counts }: Batch): string {
  return status === 'queued' && counts.scheduled === total ? 'scheduled' : status;
}

/** Returns the hour in which a batch was accepted, which is the same for all members. */
function hourOf(at: string): Period {
  const from = beginOf(new Date(at), 'hour').getTime();
  return { step: 'hour', from, to: from + STEP_MS.hour };
}

const FAILED = ['failed', 'rejected', 'bounced'] as const;
const FAILED_SHOWN = 10;

/** Lists the latest members that failed, bounced or were rejected. */
async function listFailed(db: Db, orgId: string, batch_id: string): Promise<readonly EmailSummary[]> {
  const filters = { tags: [], status: FAILED, batch_id };
  return (await listEmails(db, orgId, filters, null, FAILED_SHOWN)).rows;
}

/** True if members are being sent. Scheduled members do not count, since they may be pending for weeks. */
function isUnderWay({ status, counts }: Batch): boolean {
  return status === 'processing' || (counts.queued ?? 0) > 0;
}

function statusesOf({ counts }: Batch) {
  return EMAIL_STATUSES.map((status) => [status, counts[status] ?? 0] as const).filter(([, members]) => members > 0);
}

/** The share of emails that are no longer pending, with any outcome. */
function Progress({ batch }: { batch: Batch }): Html {
  const { id, total, counts } = batch;
  const pending = PENDING_STATUSES.reduce((sum, status) => sum + (counts[status] ?? 0), 0);
  const words = `${formatNumber(total - pending)} of ${formatNumber(total)}`;
  return (
    <>
      <progress id={`progress-${id}`} max={total} value={total - pending} aria-label={`Done: ${words}`} safe>
        {words}
      </progress>
      <Sub text={words} />
    </>
  );
}
