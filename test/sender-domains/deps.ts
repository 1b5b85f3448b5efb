import { pino } from 'pino';
import type { Dns } from '../../src/providers/dns.ts';
import { dkimSeal, type SenderDomainDeps } from '../../src/sender-domains/deps.ts';
import type { Pool } from '../../src/store/postgres/pool.ts';
import { SECRET_KEY } from '../support/secret-key.ts';

/** No name server can be asked: nothing leaves this machine. */
const NO_DNS: Dns = {
  txt: async () => ({ kind: 'unknown', reason: 'no answer in time' }),
  cname: async () => ({ kind: 'unknown', reason: 'no answer in time' }),
};

/** What domains are checked with unless a test states otherwise: no DNS, no Postmark account, an SMTP server. */
export function senderDomains(pool: Pool, given: Partial<SenderDomainDeps> = {}): SenderDomainDeps {
  return {
    pool,
    seal: dkimSeal(SECRET_KEY),
    dns: NO_DNS,
    senders: { postmark: false, smtpHost: 'smtp.example.net' },
    postmark: undefined,
    log: pino({ level: 'silent' }),
    ...given,
  };
}
