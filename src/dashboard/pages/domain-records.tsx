import type { ShownRecord } from '../../domain/senders/sender-records.ts';
import { nameInZone, zoneFile } from '../../domain/senders/zone-file.ts';
import { escapeHtml } from '../../lib/html.ts';
import { Command, Copy, Section, StatusBadge, Sub, Table } from '../elements.tsx';
import type { Html } from '../page.ts';

const PURPOSES: Readonly<Record<ShownRecord['record'], string>> = {
  OWNERSHIP: 'Proves that you own the domain',
  DKIM: 'Signs your email',
  SPF: 'Lists the servers that may send your email',
  RETURN_PATH: 'Receives bounces',
  DMARC: 'Sets the policy for email that fails authentication',
};

interface RecordsProps {
  readonly domain: string;
  readonly records: readonly ShownRecord[];
  /** The path of the domain's page. */
  readonly path: string;
}

/** The DNS records of a domain as a table, and all of them as a zone file. */
export function Records({ domain, records, path }: RecordsProps): Html {
  return (
    <Section title="DNS records">
      <Table layout="records" caption="DNS records" columns={['Type', 'Name', 'Value', 'Purpose', 'Status']}>
        {records.map((each) => (
          <>
            <Row each={each} domain={domain} />
            <Finding each={each} />
          </>
        ))}
      </Table>
      <details class="after">
        <summary>All records as a zone file</summary>
        <Command text={zoneFile(records)} />
        <a href={`${path}/zone`}>Download zone file</a>
      </details>
    </Section>
  );
}

function Row({ each, domain }: { each: ShownRecord; domain: string }): Html {
  const { record, type, name, value, priority, ttl, required, status } = each;
  const relative = nameInZone(name, domain);
  return (
    <tr>
      <td title={`TTL ${ttl} seconds`}>
        <span safe>{priority === null ? type : `${type} ${priority}`}</span>
      </td>
      <th scope="row" title={escapeHtml(name)}>
        <Copy value={name} />
        <Sub text={`${relative.name} in the zone ${relative.zone}`} />
      </th>
      <td title={escapeHtml(value)}>
        <Copy value={value} />
      </td>
      <td title={PURPOSES[record]}>
        <span safe>{record.replace('_', ' ')}</span>
        <Sub text={required ? 'required' : 'recommended'} />
      </td>
      <td>
        <StatusBadge status={status} />
      </td>
    </tr>
  );
}

/** The DNS response for a record that is missing or wrong, and the required change. */
function Finding({ each: { record, required, status, error, found } }: { each: ShownRecord }): Html {
  if (error === null && (found === null || status === 'verified')) return <></>;
  const current = found === null || found.length === 0 ? 'no record' : found.join(', ');
  return (
    <tr class="finding">
      <td colspan="5">
        <p class={['notice', required ? 'bad' : 'warning']}>
          <strong safe>{record.replace('_', ' ')}</strong>: {error !== null && <span safe>{`${error}. `}</span>}Current
          value: <code safe>{current}</code>
        </p>
      </td>
    </tr>
  );
}
