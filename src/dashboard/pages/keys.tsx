import { Type } from 'typebox';
import { removeKey, requireKey } from '../../accounts/keys.ts';
import { ServiceError } from '../../domain/errors.ts';
import { listKeys, type Preset } from '../../store/accounts/keys.ts';
import { usage } from '../../store/limits/quota.ts';
import { isStatementTimeout } from '../../store/postgres/pool.ts';
import { buttonAction } from '../act.ts';
import { escapeHtml } from '../../lib/html.ts';
import { Empty, Facts, Section, StatusBadge, Sub, Text, Time, TimeCell } from '../elements.tsx';
import { confirm } from '../form-elements.tsx';
import { listPage } from '../list-page.tsx';
import { Layout } from '../layout.tsx';
import { idOf, page, type PageRow } from '../page.ts';
import { formatNumber } from '../../lib/text.ts';

export const PATH = '/dashboard/keys';
export const CRUMBS = [{ path: PATH, name: 'API keys' }];

const PRESET_NAMES: Readonly<Record<Preset, string>> = {
  full_access: 'Full access',
  sending_access: 'Sending access',
  read_only: 'Read only',
};

const list = listPage({
  title: 'API keys',
  caption: 'API keys, newest first',
  columns: ({ role }) => [
    ...['Key', 'Permission', 'Limits', 'Last used', 'Created', 'Expires'],
    ...(role === 'owner' ? [''] : []),
  ],
  add: { href: `${PATH}/new`, label: 'Create API key' },
  read: ({ pool, organization }, after, limit) => listKeys(pool, organization.id, after, limit),
  row: (
    {
      id,
      name,
      preset,
      domain_ids: domains,
      allowed_ips: ips,
      last_used_at: lastUsed,
      expires_at: expires,
      created_at: created,
    },
    context,
  ) => (
    <tr>
      <th scope="row">
        <span safe>{name ?? id}</span>
        {name !== null && <Sub text={id} />}
        <span class="sub">
          <a href={`/dashboard/requests?key=${id}`}>Requests</a>
        </span>
      </th>
      <td safe>{PRESET_NAMES[preset]}</td>
      <td>
        {domains === null && ips === null && <span class="muted">none</span>}
        {domains !== null && <Text text={domains.length === 1 ? 'one domain' : `${domains.length} domains`} />}
        {ips !== null && (
          <span class="sub">
            from{' '}
            {ips.map((range, index) => (
              <>
                <span class="range" safe>
                  {index < ips.length - 1 ? `${range},` : range}
                </span>{' '}
              </>
            ))}
          </span>
        )}
      </td>
      <td>{lastUsed === null ? <span class="muted">never</span> : <Time at={lastUsed} relative />}</td>
      <TimeCell at={created} short />
      <td>
        {expires !== null && Date.parse(expires) <= Date.now() && <StatusBadge status="expired" />}
        <Time at={expires} short />
      </td>
      {context.role === 'owner' && (
        <td>
          <div class="row">
            <a class="button small" href={`${PATH}/${id}/edit`} aria-label={`Edit ${escapeHtml(name ?? id)}`}>
              Edit
            </a>
            {confirm(context, 'Revoke', {
              action: `${PATH}/${id}/revoke`,
              id: `revoke-${id}`,
              question: `Programs that use ${name ?? id} are refused immediately. This cannot be undone.`,
              small: true,
            })}
          </div>
        </td>
      )}
    </tr>
  ),
  empty: () => (
    <Empty title="No API keys yet">
      <p>Programs send and read with an API key. Owners create keys here and see each key once.</p>
    </Empty>
  ),
  footer: (
    <Section title="This month">
      {/* A page of its own: without a quota, all emails of the month are read. */}
      <a href={`${PATH}/usage`}>Show the quota used this month</a>
    </Section>
  ),
});

const showUsage = page(Type.Object({}), async (context) => {
  const quotaUsage = await usage(context.pool, context.organization.id).catch((error: unknown) => {
    if (!isStatementTimeout(error)) throw error;
    throw new ServiceError('unavailable', 'this month has too many emails to count them without a quota');
  });
  return (
    <Layout context={context} title="Quota used this month" crumbs={CRUMBS}>
      <Facts
        facts={[
          ['Used this month (UTC)', <Text text={formatNumber(quotaUsage?.used ?? 0)} />],
          ['Quota', <Text text={quotaUsage?.monthly == null ? 'none' : formatNumber(quotaUsage.monthly)} />],
          ['Resets on', <Time at={quotaUsage?.resets_at ?? null} />],
        ]}
      />
    </Layout>
  );
});

const revoke = buttonAction(async (context) => {
  const { pool, organization } = context;
  const { id, name, preset } = await requireKey(pool, organization.id, idOf(context));
  return {
    action: 'keys.delete',
    run: () => removeKey(pool, organization.id, id),
    detail: { name, preset },
    next: PATH,
    flash: 'The API key was revoked.',
  };
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/usage`, 'viewer', showUsage, 'expensive'],
  ['POST', `${PATH}/:id/revoke`, 'owner', revoke],
];
