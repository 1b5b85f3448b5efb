import { Type } from 'typebox';
import { type AuditEntry, listAudit } from '../../store/accounts/audit.ts';
import { Empty, Pager, Table, Time } from '../elements.tsx';
import { Layout } from '../layout.tsx';
import { type Html, page, type PageRow } from '../page.ts';
import { cutPage, textToPlace } from '../places.ts';

const ENTRIES = 50;

const list = page(Type.Object({ cursor: Type.Optional(Type.String()) }), async (context) => {
  const place = textToPlace(context.query.cursor);
  const found = await listAudit(context.pool, context.organization.id, place, ENTRIES + 1);
  const { rows: entries, next } = cutPage(found, ENTRIES, ({ at, id }) => ({ created_at: at, id }));
  return (
    <Layout context={context} title="Audit log">
      {entries.length === 0 ? (
        <Empty title="Nothing was changed yet">
          <p>What members change here, and programs through the API, is noted with who did it and when.</p>
        </Empty>
      ) : (
        <Table caption="Changes, newest first" columns={['When', 'Who', 'What', 'To what', 'Detail']}>
          {entries.map((entry) => (
            <EntryRow entry={entry} />
          ))}
        </Table>
      )}
      <Pager visit={context} next={next} />
    </Layout>
  );
});

export const rows: readonly PageRow[] = [['GET', '/dashboard/audit', 'viewer', list]];

function EntryRow({ entry }: { entry: AuditEntry }): Html {
  const { at, actor_kind: kind, actor_id: id, actor_email: email, action, target, detail } = entry;
  return (
    <tr>
      <td>
        <Time at={at} />
      </td>
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
  );
}
