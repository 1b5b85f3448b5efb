import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { AUTHORITATIVE_ANSWER, decode, encode, type Packet, RECURSION_AVAILABLE, type StringAnswer } from 'dns-packet';

/** Failures of a name server; `silent` sends no answer. */
type Fault = 'SERVFAIL' | 'REFUSED' | 'silent';

/** RFC 1035 §4.1.1 */
const RCODES = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const;
/** The maximum length of one part of a TXT record. */
const TXT_PART_BYTES = 255;

/** A DNS server on the loopback whose zones a test fills. */
export interface DnsServer {
  /** As the setting DNS_SERVERS names it. */
  readonly address: string;
  /** Types and names of the questions, in their order. */
  readonly questions: string[];
  /** Replaces the records of a name by these TXT records, each in parts of 255 bytes. */
  readonly txt: (name: string, ...values: string[]) => void;
  readonly cname: (name: string, target: string) => void;
  /** Replaces the records of a name by these IPv4 and IPv6 addresses. */
  readonly addresses: (name: string, ...addresses: string[]) => void;
  /** Removes all records of a name. */
  readonly clear: (name: string) => void;
  /** Sets a failure for a name, or for all; undefined ends it. */
  readonly fail: (fault: Fault | undefined, name?: string) => void;
  readonly close: () => Promise<void>;
}

export async function startDnsServer(): Promise<DnsServer> {
  const records = new Map<string, { type: 'TXT' | 'CNAME' | 'A' | 'AAAA'; data: string | Buffer[] }[]>();
  const faults = new Map<string, Fault>();
  const questions: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (message, { port, address }) => {
    const { id, questions: [question] = [] } = decode(message);
    if (!question) return;
    const name = question.name.toLowerCase();
    questions.push(`${question.type} ${name}`);
    const fault = faults.get(name) ?? faults.get('');
    if (fault === 'silent') return;
    const here = records.get(name);
    const answers = (fault ? [] : (here ?? [])).filter(({ type }) => type === question.type);
    const rcode = RCODES[fault ?? (here ? 'NOERROR' : 'NXDOMAIN')];
    socket.send(
      encode({
        type: 'response',
        id: id as number,
        flags: AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | rcode,
        questions: [question],
        answers: answers.map(({ type, data }) => ({ type, name: question.name, ttl: 60, data }) as StringAnswer),
      } satisfies Packet),
      port,
      address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    txt(name, ...values) {
      records.set(
        name,
        values.map((value) => ({ type: 'TXT', data: parts(value) })),
      );
    },
    cname: (name, target) => void records.set(name, [{ type: 'CNAME', data: target }]),
    addresses(name, ...addresses) {
      records.set(
        name,
        addresses.map((address) => ({ type: isIPv6(address) ? 'AAAA' : 'A', data: address })),
      );
    },
    clear: (name) => void records.delete(name),
    fail(fault, name = '') {
      if (fault) faults.set(name, fault);
      else faults.delete(name);
    },
    async close() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

function parts(value: string): Buffer[] {
  const bytes = Buffer.from(value);
  const count = Math.max(1, Math.ceil(bytes.length / TXT_PART_BYTES));
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * TXT_PART_BYTES, (i + 1) * TXT_PART_BYTES));
}
