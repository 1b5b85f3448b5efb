import { listAudit } from '../../store/accounts/audit.ts';
import { Empty, TimeCell } from '../elements.tsx';
import { listPage } from '../list-page.tsx';
import type { PageRow } from '../page.ts';

const list = listPage({
  title: 'Audit log',
  caption: 'Changes, newest first',
  columns: ['When', 'Who', 'What', 'To what', 'Detail'],
  read: async ({ pool, organization }, place, limit) => {
    const entries = await listAudit(pool, organization.id, place, limit);
    return entries.map((entry) => ({ ...entry, created_at: entry.at }));
  },
  row: ({ at, actor_kind: kind, actor_id: id, actor_email: email, action, target, detail }) => (
    <tr>
      <TimeCell at={at} />
      <td>
        <span safe>{email ?? id}</span>
        {kind !== 'user' && <span class="sub">{kind === 'key' ? 'API key' : 'Sendwright'}</span>}
      </td>
      <td>
        <code safe>{action}</code>
      </td>
      <td>{target !== null && <code safe>{target}</code>}</td>
      <td class="sub" safe>
        {Object.entries(detail)
          .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
          .join(', ')}
      </td>
    </tr>
  ),
  empty: () => (
    <Empty title="Nothing was changed yet">
      <p>What members change here, and programs through the API, is noted with who did it and when.</p>
    </Empty>
  ),
});

export const rows: readonly PageRow[] = [['GET', '/dashboard/audit', 'viewer', list]];
