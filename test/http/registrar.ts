import assert from 'node:assert/strict';
import { makeDns } from '../../src/providers/dns.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { type Answer, type Organization, type Service, startService } from './service.ts';

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

/** The service with its own name server and two organizations, and operations on domains. */
export interface Registrar {
  readonly dns: DnsServer;
  readonly service: Service;
  readonly ours: Organization;
  readonly theirs: Organization;
  /** A name that is not registered. */
  readonly fresh: () => string;
  readonly post: (name: unknown, by?: Organization) => Promise<Answer>;
  readonly add: (name: string, by?: Organization) => Promise<Domain>;
  readonly get: (id: string, by?: Organization) => Promise<Domain>;
  /** Verifies a domain without the limit of checks. */
  readonly verify: (id: string, by?: Organization) => Promise<Domain>;
  /** Adds the required records to DNS. */
  readonly publish: (domain: Domain) => void;
  /** Registers and verifies a domain. */
  readonly verified: (name?: string, by?: Organization) => Promise<Domain>;
  readonly send: (domain: string, by?: Organization) => Promise<Answer>;
  /** The data of the webhook events of this type. */
  readonly told: (by: Organization, type: string) => Promise<Record<string, string>[]>;
  readonly close: () => Promise<void>;
}

let count = 0;

export async function startRegistrar(): Promise<Registrar> {
  const dns = await startDnsServer();
  const service = await startService({}, { dns: makeDns([dns.address], 3_000) });
  const [ours, theirs] = [await service.organization(), await service.organization()];
  const fresh = () => `d${++count}.example.com`;
  const post: Registrar['post'] = (name, by = ours) => by.call('POST', '/v1/domains', { json: { name } });
  const add: Registrar['add'] = async (name, by) => body(await post(name, by), 201);
  const get: Registrar['get'] = async (id, by = ours) => body(await by.call('GET', `/v1/domains/${id}`), 200);
  const verify: Registrar['verify'] = async (id, by = ours) => {
    await service.pool.query('UPDATE domains SET asked_at = NULL WHERE id = $1', [id]);
    return body(await by.call('POST', `/v1/domains/${id}/verify`), 200);
  };
  const publish = (domain: Domain): void => {
    for (const { required, name, value } of domain.records) if (required) dns.txt(name, value);
  };
  return {
    ...{ dns, service, ours, theirs, fresh, post, add, get, verify, publish },
    async verified(name = fresh(), by = ours) {
      const domain = await add(name, by);
      publish(domain);
      const checked = await verify(domain.id, by);
      assert.equal(checked.status, 'verified');
      return checked;
    },
    send: (domain, by = ours) => by.send({ from: `a@${domain}` }),
    async told(by, type) {
      const { rows } = await service.pool.query<{ data: Record<string, string> }>(
        'SELECT data FROM webhook_events WHERE org_id = $1 AND type = $2 ORDER BY id',
        [by.id, type],
      );
      return rows.map(({ data }) => data);
    },
    async close() {
      await service.close();
      await dns.close();
    },
  };
}

export function body(answer: Answer, status: number): Domain {
  assert.equal(answer.status, status, answer.text);
  return answer.body as Domain;
}

/** The record of this kind of a domain. */
export function record({ records }: Domain, kind: string): DnsRecord {
  return records.find((each) => each.record === kind) ?? assert.fail(`there is no record ${kind}`);
}
