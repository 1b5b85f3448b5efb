import { Type } from 'typebox';
import { percentile, spanInWords } from '../../lib/times.ts';
import { type Issue, type Backlog, COUNTED, listIssues, readBacklog } from '../../store/outbox/backlog.ts';
import { type EmailHours, readEmailHours } from '../../store/emails/hours.ts';
import { listEmails } from '../../store/emails/lists.ts';
import { MailChart, partInWords, StatusTotals, sumOf } from '../chart.tsx';
import { curl, Empty, NumberCell, Table, Time, Section } from '../elements.tsx';
import { Layout } from '../layout.tsx';
import { type Context, type Html, page, type PageRow } from '../page.ts';
import { EmailRows, exampleEmail } from './emails.tsx';

const LATEST_EMAILS = 10;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const EVERY = { tags: [], status: null, batch_id: null } as const;

interface Range {
  readonly name: string;
  /** Hours or days, including the current one. */
  readonly count: number;
  readonly by: 'hour' | 'day';
}
const RANGES: Readonly<Record<string, Range>> = {
  '24h': { name: 'Last 24 hours', count: 24, by: 'hour' },
  '7d': { name: 'Last 7 days', count: 7 * 24, by: 'hour' },
  '30d': { name: 'Last 30 days', count: 30, by: 'day' },
};
const DEFAULT_RANGE = '24h';

const Query = Type.Object({ range: Type.Optional(Type.Enum(['24h', '7d', '30d'])) });

const overview = page(Query, async (context) => {
  const { pool, organization, query } = context;
  const chosen = query.range ?? DEFAULT_RANGE;
  const range = RANGES[chosen] as Range;
  const step = range.by === 'day' ? DAY : HOUR;
  const last = Math.floor(Date.now() / step) * step;
  const first = last - (range.count - 1) * step;
  const [{ emails }, hours, backlog, issues] = await Promise.all([
    listEmails(pool, organization.id, EVERY, null, LATEST_EMAILS),
    readEmailHours(pool, organization.id, new Date(first).toISOString(), range.by),
    readBacklog(pool, organization.id),
    listIssues(pool, organization.id),
  ]);
  if (emails.length === 0) return <FirstSteps context={context} issues={issues} />;
  return (
    <Layout context={context} title="Overview" charts actions={<Ranges chosen={chosen} />}>
      <Notices issues={issues} />
      <Waiting backlog={backlog} />
      <Section title={`Emails per ${range.by}, by current status`}>
        {hours.statuses.size === 0 ? (
          <p class="muted">No email was accepted in this time.</p>
        ) : (
          <MailChart statuses={hours.statuses} first={first} last={last} step={step} />
        )}
      </Section>
      {hours.statuses.size > 0 && (
        <div class="columns">
          <Section title="By status">
            <StatusTotals statuses={hours.statuses} />
          </Section>
          <Section title="Bounces by reason">
            <Bounces bounces={hours.bounces} />
          </Section>
          <Section title="Delivery time">
            <Times hours={hours} />
          </Section>
        </div>
      )}
      <Section title="Newest emails">
        <EmailRows emails={emails} />
      </Section>
    </Layout>
  );
});

export const rows: readonly PageRow[] = [['GET', '/dashboard', 'viewer', overview]];

async function FirstSteps({ context, issues }: { context: Context; issues: readonly Issue[] }): Promise<string> {
  const example = await exampleEmail(context);
  const isReady = !String(example['from']).endsWith('your-domain.example');
  return (
    <Layout context={context} title="Overview">
      <Notices issues={issues} />
      <Empty title="No email yet" command={curl(context, 'POST', '/v1/emails', example)}>
        {isReady ? (
          <p>
            Send one to yourself from a <a href="/dashboard/domains">domain</a> of this organization with an{' '}
            <a href="/dashboard/keys">API key</a>, and watch it here.
          </p>
        ) : (
          <p>
            First this organization needs a verified <a href="/dashboard/domains">domain</a>. Then put it in place of
            the one below, and send with an <a href="/dashboard/keys">API key</a>.
          </p>
        )}
      </Empty>
    </Layout>
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

function Waiting({ backlog }: { backlog: Backlog }): Html {
  const { queued, oldest_due_at: oldest, due_soon: dueSoon, webhooks } = backlog;
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
  return count > COUNTED ? `over ${COUNTED.toLocaleString('en')}` : count.toLocaleString('en');
}

function Bounces({ bounces }: { bounces: EmailHours['bounces'] }): Html {
  const total = sumOf(bounces);
  if (total === 0) return <p class="muted">No bounces in this period.</p>;
  const sorted = Object.entries(bounces).sort(([, a], [, b]) => b - a);
  return (
    <Table caption="Bounces by reason" columns={['Reason', 'Emails', 'Share']}>
      {sorted.map(([reason, emails]) => (
        <tr>
          <th scope="row" safe>
            {reason.replaceAll('_', ' ')}
          </th>
          <NumberCell text={emails.toLocaleString('en')} />
          <td>
            <meter min="0" max={total} value={emails} aria-label={`Share of ${reason.replaceAll('_', ' ')}`} safe>
              {partInWords(emails, total)}
            </meter>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Times({ hours }: { hours: EmailHours }): Html {
  const shown = [
    ['sent', hours.sent],
    ['delivered', hours.delivered],
  ] as const;
  const cell = (steps: ReadonlyMap<number, number>, part: number): string => {
    const time = percentile(steps, part);
    return time === null ? '–' : spanInWords(time);
  };
  return (
    <>
      <Table caption="Delivery time" columns={['Milestone', 'Emails', 'Median', 'p95']}>
        {shown.map(([name, steps]) => (
          <tr>
            <th scope="row">{name}</th>
            <NumberCell text={[...steps.values()].reduce((sum, emails) => sum + emails, 0).toLocaleString('en')} />
            <NumberCell text={cell(steps, 0.5)} />
            <NumberCell text={cell(steps, 0.95)} />
          </tr>
        ))}
      </Table>
      <p class="hint">Measured from acceptance or the scheduled time. Approximate.</p>
    </>
  );
}
