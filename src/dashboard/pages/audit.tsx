import { Type } from 'typebox';
import { escapeHtml } from '../../lib/html.ts';
import { type AuditEntry, findExistingTargets, listAudit } from '../../store/accounts/audit.ts';
import { findKeyNames } from '../../store/accounts/keys.ts';
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
  read: async ({ pool, organization }, after, limit) => {
    const entries = await listAudit(pool, organization.id, after, limit);
    const targets = entries.flatMap(({ target }) => target ?? []);
    const [existing, keyNames] = await Promise.all([
      findExistingTargets(pool, organization.id, targets),
      findKeyNames(pool, organization.id, [...targets, ...entries.map((entry) => entry.actor_id)]),
    ]);
    return entries.map((entry) => ({
      ...entry,
      created_at: entry.at,
      path: targetPath(entry.target ?? '', existing),
      keyName: keyNames.get(entry.actor_id),
      targetName: keyNames.get(entry.target ?? ''),
    }));
  },
  row: ({
    at,
    actor_kind: kind,
    actor_id: id,
    actor_email: email,
    keyName,
    action,
    target,
    targetName,
    detail,
    path,
  }) => {
    const details = describe(detail);
    const kindInWords = kind === 'key' ? 'API key' : 'Sendwright';
    return (
      <tr>
        <TimeCell at={at} short />
        <td title={escapeHtml(email ?? withName(id, keyName))}>
          <span safe>{email ?? keyName ?? id}</span>
          {kind !== 'user' && <Sub text={keyName === undefined ? kindInWords : `${kindInWords} ${id}`} />}
        </td>
        <td title={action}>
          <code safe>{action}</code>
        </td>
        <td title={target === null ? undefined : escapeHtml(withName(target, targetName))}>
          {target !== null && <Target id={target} name={targetName} path={path} />}
        </td>
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

function withName(id: string, name: string | undefined): string {
  return name === undefined ? id : `${name} (${id})`;
}

interface TargetProps {
  readonly id: string;
  readonly name: string | undefined;
  readonly path: string | undefined;
}

function Target({ id, name, path }: TargetProps): Html {
  const text = (
    <>
      {name !== undefined && <span safe>{`${name} `}</span>}
      <code safe>{id}</code>
    </>
  );
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
  ['GET', `${PATH}/download`, 'viewer', download, 'expensive'],
];
