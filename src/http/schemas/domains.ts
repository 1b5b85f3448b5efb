import { Type } from 'typebox';
import { DOMAIN_STATUSES, RECORD_KINDS, RECORD_STATUSES } from '../../domain/senders/sender-domain.ts';
import { nullable, Timestamp } from './common.ts';

export const AddDomainBody = Type.Object(
  {
    name: Type.String({
      description: 'A domain name, also in Unicode; a name below another one is registered on its own',
      examples: ['example.com', 'mail.example.com'],
    }),
  },
  { title: 'CreateDomainRequest', additionalProperties: false, description: 'A domain' },
);

export const DomainParams = Type.Object({ id: Type.String({ examples: ['dm_01kajcf3g5h7j9k1m3n5p7q9rs'] }) });

const domain = {
  id: Type.String(),
  name: Type.String({ description: 'As an A-label, in lower case' }),
  status: Type.Enum([...DOMAIN_STATUSES], {
    title: 'DomainStatus',
    description:
      '`pending`: it must still prove itself. `verified`: email can be sent from it. `failed`: not proved within 72 ' +
      'hours, lost, or proved by another account; verify it to begin anew.',
  }),
  trusted: Type.Boolean({ description: 'Taken on trust by the operator: verified regardless of DNS' }),
  created_at: Timestamp,
  verified_at: nullable(Timestamp, 'Null unless it is verified'),
  last_checked_at: nullable(Timestamp, 'When DNS was last asked'),
  next_check_at: nullable(Timestamp, 'When it will be asked again; null when that is not planned'),
};

export const DomainSummary = Type.Object(domain, { title: 'DomainSummary' });

const record = Type.Object(
  {
    record: Type.Enum([...RECORD_KINDS], { title: 'DomainRecordKind', description: 'What it is for' }),
    type: Type.Enum(['TXT', 'CNAME']),
    name: Type.String({ description: 'In full; many DNS providers add the domain themselves' }),
    value: Type.String(),
    priority: nullable(Type.Integer(), 'Null: none of these types has one'),
    ttl: Type.Integer({ description: 'Seconds, as advice' }),
    required: Type.Boolean({ description: 'Whether the domain cannot be verified without it; the others are advice' }),
    status: Type.Enum([...RECORD_STATUSES], {
      title: 'DomainRecordStatus',
      description: '`pending`: not there yet, or not asked for. `verified`: right. `failed`: there, and wrong.',
    }),
    found: nullable(
      Type.Array(Type.String()),
      'What DNS answered, none or several values; null when it has not answered yet',
    ),
    error: nullable(Type.String(), 'What to change'),
  },
  { title: 'DomainRecord' },
);

export const DomainBody = Type.Object(
  {
    ...domain,
    records: Type.Array(record, { description: 'What belongs into its DNS, and what is there' }),
  },
  { title: 'Domain' },
);
