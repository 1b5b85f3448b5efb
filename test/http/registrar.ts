import assert from 'node:assert/strict';
import { makeDns } from '../../src/providers/dns.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { type Answer, bodyOf, startService } from './service.ts';

export interface DnsRecord {
  readonly record: string;
  readonly type: string;
  readonly name: string;
  readonly value: string;
  readonly required: boolean;
  readonly status: string;
  readonly found: string[] | null;
  readonly error: string | null;
}
export interface Domain {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly trusted: boolean;
  readonly verified_at: string | null;
  readonly last_checked_at: string | null;
  readonly next_check_at: string | null;
  readonly records: DnsRecord[];
}

let count = 0;

/** The service with its own name server and two organizations, and operations on domains. */
export async function startRegistrar() {
  const dns = await startDnsServer();
  const service = await startService({}, { dns: makeDns([dns.address], 3_000) });
  const [ours, theirs] = [await service.organization(), await service.organization()];
  /** A name that is not registered. */
  const fresh = () => `d${++count}.example.com`;
  const post = (name: unknown, by = ours) => by.call('POST', '/v1/domains', { json: { name } });
  const add = async (name: string, by = ours) => body(await post(name, by), 201);
  const get = async (id: string, by = ours) => body(await by.call('GET', `/v1/domains/${id}`), 200);
  /** Verifies a domain without the limit of checks. */
  const verify = async (id: string, by = ours) => {
    await service.pool.query('UPDATE domains SET asked_at = NULL WHERE id = $1', [id]);
    return body(await by.call('POST', `/v1/domains/${id}/verify`), 200);
  };
  /** Adds the required records to DNS. */
  const publish = (domain: Domain): void => {
    for (const { required, name, value } of domain.records) if (required) dns.txt(name, value);
  };
  return {
    ...{ dns, service, ours, theirs, fresh, post, add, get, verify, publish },
    /** Registers and verifies a domain. */
    async verified(name = fresh(), by = ours) {
      const domain = await add(name, by);
      publish(domain);
      const checked = await verify(domain.id, by);
      assert.equal(checked.status, 'verified');
      return checked;
    },
    send: (domain: string, by = ours) => by.send({ from: `a@${domain}` }),
    /** The data of the webhook events of this type. */
    async eventsOf(type: string, by = ours) {
      const { rows } = await service.pool.query<{ data: Record<string, string> }>(
        'SELECT data FROM webhook_events WHERE org_id = $1 AND type = $2 ORDER BY id',
        [by.id, type],
      );
      return rows.map(({ data }) => data);
    },
    close: async () => {
      await service.close();
      await dns.close();
    },
  };
}

export const body = (answer: Answer, status: number) => bodyOf<Domain>(answer, status);

/** The record of this kind of a domain. */
export function record({ records }: Domain, kind: string): DnsRecord {
  return records.find((each) => each.record === kind) ?? assert.fail(`there is no record ${kind}`);
}
