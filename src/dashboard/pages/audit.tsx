import { Type } from 'typebox';
import { escapeHtml } from '../../lib/html.ts';
import { type AuditEntry, findExistingTargets, listAudit } from '../../store/accounts/audit.ts';
import { type Cursor, cutPage } from '../../store/postgres/page.ts';
import { csvParts, exportCsv } from '../csv.ts';
import { Empty, Sub, TimeCell } from '../elements.tsx';
import { listPage } from '../list-page.tsx';
import { type Html, page, type PageRow } from '../page.ts';
import { targetPath } from '../targets.ts';

const PATH = '/dashboard/audit';
/** Entries per query of a download. */
const CHUNK = 1_000;

const list = listPage({
  title: 'Audit log',
  actions: (
    <a class="button" href={`${PATH}/download`}>
      Download as CSV
    </a>
  ),
  caption: 'Changes, newest first',
  columns: ['Time', 'Actor', 'Action', 'Target', 'Details'],
  layout: 'audit',
  read: async ({ pool, organization }, place, limit) => {
    const entries = await listAudit(pool, organization.id, place, limit);
    const targets = entries.flatMap(({ target }) => target ?? []);
    const existing = await findExistingTargets(pool, organization.id, targets);
    return entries.map((entry) => ({ ...entry, created_at: entry.at, path: targetPath(entry.target ?? '', existing) }));
  },
  row: ({ at, actor_kind: kind, actor_id: id, actor_email: email, action, target, detail, path }) => {
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
        <td title={target ?? undefined}>{target !== null && <Target id={target} path={path} />}</td>
        <td class="sub" title={escapeHtml(details)} safe>
          {details}
        </td>
      </tr>
    );
  },
  empty: () => (
    <Empty title="No changes yet">
      <p>
        Changes by members in the dashboard and by programs through the API appear here, with who made them and when.
      </p>
    </Empty>
  ),
});

/** Formats the details of an entry, without empty values. */
function describe(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}

function Target({ id, path }: { id: string; path: string | undefined }): Html {
  const text = <code safe>{id}</code>;
  return path === undefined ? text : <a href={path}>{text}</a>;
}

const COLUMNS = ['at', 'actor_kind', 'actor_id', 'actor_email', 'action', 'target', 'detail', 'id'] as const;

const download = page(Type.Object({}), (context) => {
  const { pool, organization } = context;
  const read = async (after: Cursor | null) => {
    const entries = await listAudit(pool, organization.id, after, CHUNK + 1);
    return cutPage(
      entries.map((entry) => ({ ...entry, created_at: entry.at })),
      CHUNK,
    );
  };
  const cellsOf = (entry: AuditEntry) =>
    COLUMNS.map((column) => (column === 'detail' ? JSON.stringify(entry.detail) : entry[column]));
  return exportCsv(context, { action: 'audit.export' }, 'audit-log', csvParts(COLUMNS, read, cellsOf));
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/download`, 'viewer', download],
];
