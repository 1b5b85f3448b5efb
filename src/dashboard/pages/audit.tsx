import { escapeHtml } from '../../lib/html.ts';
import { listAudit } from '../../store/accounts/audit.ts';
import { Empty, Sub, TimeCell } from '../elements.tsx';
import { listPage } from '../list-page.tsx';
import type { Html, PageRow } from '../page.ts';

const list = listPage({
  title: 'Audit log',
  caption: 'Changes, newest first',
  columns: ['Time', 'Actor', 'Action', 'Target', 'Details'],
  layout: 'audit',
  read: async ({ pool, organization }, place, limit) => {
    const entries = await listAudit(pool, organization.id, place, limit);
    return entries.map((entry) => ({ ...entry, created_at: entry.at }));
  },
  row: ({ at, actor_kind: kind, actor_id: id, actor_email: email, action, target, detail }) => {
    const details = describe(detail);
    return (
      <tr>
        <TimeCell at={at} short />
        <td title={email ?? id}>
          <span safe>{email ?? id}</span>
          {kind !== 'user' && <Sub text={kind === 'key' ? 'API key' : 'Sendwright'} />}
        </td>
        <td title={action}>
          <code safe>{action}</code>
        </td>
        <td title={target ?? undefined}>{target !== null && <Target id={target} />}</td>
        <td class="sub" title={escapeHtml(details)} safe>
          {details}
        </td>
      </tr>
    );
  },
  empty: () => (
    <Empty title="Nothing was changed yet">
      <p>What members change here, and programs through the API, is noted with who did it and when.</p>
    </Empty>
  ),
});

/** Values that were not given are left out. */
function describe(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}

/** The lists whose entries have a page, by the prefix of their ids. */
const LISTS: Readonly<Record<string, string>> = { em: 'emails', bt: 'batches', dm: 'domains', wh: 'webhooks' };

function Target({ id }: { id: string }): Html {
  const list = LISTS[id.slice(0, id.indexOf('_'))];
  const text = <code safe>{id}</code>;
  return list === undefined ? text : <a href={`/dashboard/${list}/${encodeURIComponent(id)}`}>{text}</a>;
}

export const rows: readonly PageRow[] = [['GET', '/dashboard/audit', 'viewer', list]];
