import { Type } from 'typebox';
import { addCounts } from '../../domain/statistics.ts';
import {
  type Issue,
  type Backlog,
  MAX_COUNTED,
  findVerifiedDomain,
  listIssues,
  readBacklog,
} from '../../store/outbox/backlog.ts';
import { listEmails } from '../../store/emails/lists.ts';
import type { EmailSummary } from '../../store/emails/summary.ts';
import { readSeries } from '../../store/statistics/series.ts';
import { MailChart } from '../chart.tsx';
import { curl, Empty, inWords, NumberCell, Section, Table, Time } from '../elements.tsx';
import { Layout } from '../layout.tsx';
import { Live, mayChangeSoon } from '../live.tsx';
import { type Context, type Html, page, type PageRow } from '../page.ts';
import { shareInWords } from '../rates.ts';
import { emailsPath, lastSteps, type Period } from '../periods.ts';
import { RateFigures, readFigures, StateTable, TimesTable } from '../statistics.tsx';
import { Checklist } from './checklist.tsx';
import { EmailRows, exampleFrom } from './emails.tsx';
import { formatNumber } from '../../lib/text.ts';

const LATEST_EMAILS = 10;
const NO_FILTERS = { tags: [], status: null, batch_id: null } as const;

interface Range {
  readonly name: string;
  /** Number of hours or days, including the current one. */
  readonly count: number;
  readonly by: 'hour' | 'day';
  readonly before: string;
}
const RANGES: Readonly<Record<string, Range>> = {
  '24h': { name: 'Last 24 hours', count: 24, by: 'hour', before: 'the 24 hours before' },
  '7d': { name: 'Last 7 days', count: 7 * 24, by: 'hour', before: 'the 7 days before' },
  '30d': { name: 'Last 30 days', count: 30, by: 'day', before: 'the 30 days before' },
};
const DEFAULT_RANGE = '24h';
const BOUNCE_REASONS_SHOWN = 20;

const Query = Type.Object({ range: Type.Optional(Type.Enum(['24h', '7d', '30d'])) });

const overview = page(Query, async (context) => {
  const { pool, organization, query } = context;
  const chosen = query.range ?? DEFAULT_RANGE;
  const range = RANGES[chosen] as Range;
  const period = await lastSteps(pool, range.by, range.count);
  const [{ rows: emails }, figures, bounces, backlog, issues] = await Promise.all([
    listEmails(pool, organization.id, NO_FILTERS, null, LATEST_EMAILS),
    readFigures(context, period),
    readBounces(context, period),
    readBacklog(pool, organization.id),
    listIssues(pool, organization.id),
  ]);
  return (
    <Layout context={context} title="Overview" actions={<Ranges chosen={chosen} />}>
      <Notices issues={issues} />
      <Checklist context={context} />
      <Live path={context.url} shouldRefresh={mayFirstChangeSoon(emails)}>
        {emails.length === 0 ? (
          <NoEmails context={context} />
        ) : (
          <>
            <RateFigures figures={figures} before={range.before} />
            <Section title={`Emails per ${range.by}`}>
              {figures.now.accepted === 0 ? (
                <p class="muted">No email was accepted in this time.</p>
              ) : (
                <MailChart points={figures.series.points} period={period} />
              )}
            </Section>
            <BacklogFigures backlog={backlog} />
            {figures.now.accepted > 0 && (
              <div class="columns">
                <Section title="By state">
                  <StateTable counts={figures.now} linkTo={(state) => emailsPath(period, {}, state)} />
                  <p>
                    <a href="/dashboard/tags">By tag</a>
                  </p>
                </Section>
                <Section title="Bounces by reason">
                  <Bounces bounces={bounces} period={period} />
                </Section>
                <Section title="Delivery time">
                  <TimesTable times={figures.series.times} />
                </Section>
              </div>
            )}
            <Section title="Newest emails">
              <EmailRows emails={emails} />
            </Section>
          </>
        )}
      </Live>
    </Layout>
  );
});

/** Counts emails by the reason of their first bounce, in descending order. */
async function readBounces({ pool, organization }: Context, { step, from, to }: Period): Promise<[string, number][]> {
  const filter = { channel: 'email', step, dimension: 'bounce_reason', key: null } as const;
  const period = { from: new Date(from), to: new Date(to) };
  const series = await readSeries(pool, organization.id, { ...filter, ...period }, BOUNCE_REASONS_SHOWN);
  return series.map(({ key, points }) => [key, addCounts(points).bounced]);
}

export const rows: readonly PageRow[] = [['GET', '/dashboard', 'viewer', overview, 'expensive']];

/**
 * Returns true while the first emails are awaited or may change soon. With more emails the overview does not refresh itself, since
 * its statistics cost more to read than a list.
 */
function mayFirstChangeSoon(emails: readonly EmailSummary[]): boolean {
  return emails.length === 0 || (emails.length < LATEST_EMAILS && emails.some(mayChangeSoon));
}

async function NoEmails({ context }: { context: Context }): Promise<string> {
  const { pool, organization, user } = context;
  const domain = await findVerifiedDomain(pool, organization.id);
  return (
    <Empty title="No emails yet" command={curl(context, '/v1/emails', exampleFrom(domain, user.email))}>
      {domain !== undefined ? (
        <p>
          Send one to yourself from a <a href="/dashboard/domains">domain</a> of this organization with an{' '}
          <a href="/dashboard/keys">API key</a>, and watch it here.
        </p>
      ) : (
        <p>
          First this organization needs a verified <a href="/dashboard/domains">domain</a>. Then put it in place of the
          one below, and send with an <a href="/dashboard/keys">API key</a>.
        </p>
      )}
    </Empty>
  );
}

function Ranges({ chosen }: { chosen: string }): Html {
  return (
    <nav class="tabs" aria-label="Time">
      {Object.entries(RANGES).map(([key, { name }]) => (
        <a href={`/dashboard?range=${key}`} aria-current={key === chosen ? 'true' : undefined} safe>
          {name}
        </a>
      ))}
    </nav>
  );
}

function Notices({ issues }: { issues: readonly Issue[] }): Html {
  if (issues.length === 0) return '';
  return (
    <ul class="notices" aria-label="Problems">
      {issues.map(({ kind, id, name, reason, failing_since: failing }) => {
        const list = kind === 'endpoint' ? '/dashboard/webhooks' : '/dashboard/domains';
        const words =
          kind === 'endpoint' ? `is disabled${reason === null ? '' : `: ${reason}`}` : 'failed its verification';
        return (
          <li>
            {kind === 'endpoint' ? 'The webhook endpoint ' : 'The domain '}
            <a href={`${list}/${id}`} safe>
              {name}
            </a>
            {failing === null ? (
              <span safe>{` ${words}`}</span>
            ) : (
              <>
                {' '}
                is failing: every delivery since <Time at={failing} /> has failed
              </>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function BacklogFigures({ backlog }: { backlog: Backlog }): Html {
  const { queued, oldest_due_at: oldest, due_soon: dueSoon, webhooks, is_behind: isBehind } = backlog;
  return (
    <dl class="figures">
      <div>
        <dt>Queued now</dt>
        <dd>
          <a href="/dashboard/emails?status=queued" safe>
            {countInWords(queued)}
          </a>
          {oldest !== null && (
            <span class="sub">
              the oldest since <Time at={oldest} />
            </span>
          )}
          {isBehind && <span class="sub">workers are catching up; new emails go first</span>}
        </dd>
      </div>
      <div>
        <dt>Scheduled for the next hour</dt>
        <dd>
          <a href="/dashboard/emails?status=scheduled" safe>
            {countInWords(dueSoon)}
          </a>
        </dd>
      </div>
      <div>
        <dt>Pending webhook deliveries</dt>
        <dd safe>{countInWords(webhooks)}</dd>
      </div>
    </dl>
  );
}

function countInWords(count: number): string {
  return count > MAX_COUNTED ? `over ${formatNumber(MAX_COUNTED)}` : formatNumber(count);
}

function Bounces({ bounces, period }: { bounces: readonly [reason: string, emails: number][]; period: Period }): Html {
  const total = bounces.reduce((sum, [, emails]) => sum + emails, 0);
  if (total === 0) return <p class="muted">No bounces in this period.</p>;
  return (
    <Table caption="Bounces by reason" columns={['Reason', ['Emails', 'number'], ['Share', 'number']]}>
      {bounces.map(([reason, emails]) => (
        <tr>
          <th scope="row">
            <a href={emailsPath(period, { bounce_reason: reason })} safe>
              {inWords(reason)}
            </a>
          </th>
          <NumberCell text={formatNumber(emails)} />
          <NumberCell text={shareInWords(emails, total)} />
        </tr>
      ))}
    </Table>
  );
}
