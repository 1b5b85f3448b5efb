import { Type } from 'typebox';
import { DOMAIN_OCTETS } from '../../domain/limits.ts';
import { DOMAIN_STATUSES, RECORD_KINDS, RECORD_STATUSES } from '../../domain/senders/sender-domain.ts';
import { closedObject, enumOf, nullable, objectOf, optional, Timestamp } from './common.ts';

export const AddDomainBody = closedObject('CreateDomainRequest', 'A domain', {
  name: Type.String({
    maxLength: DOMAIN_OCTETS,
    description: 'A domain name, also in Unicode; a name below another one is registered on its own',
    examples: ['example.com', 'mail.example.com'],
  }),
});

export const EditDomainBody = closedObject(
  'EditDomainRequest',
  'The changes of a domain; absent fields are unchanged',
  {
    open_tracking: optional<boolean>('boolean', { description: 'Whether opens of email from it are tracked' }),
    click_tracking: optional<boolean>('boolean', {
      description: 'Whether clicks on links in email from it are tracked',
    }),
  },
);

export const DomainParams = Type.Object({ id: Type.String({ examples: ['dm_01kajcf3g5h7j9k1m3n5p7q9rs'] }) });

const domain = {
  id: Type.String(),
  name: Type.String({ description: 'As an A-label, in lower case' }),
  status: enumOf(
    DOMAIN_STATUSES,
    'DomainStatus',
    '`pending`: not verified yet. `verified`: email can be sent from it. `failed`: not verified within 72 hours, no ' +
      'longer verified, or verified by another account; verify it to start over.',
  ),
  trusted: Type.Boolean({ description: 'Verified by the operator, regardless of DNS' }),
  created_at: Timestamp,
  verified_at: nullable(Timestamp, 'Null unless it is verified'),
  last_checked_at: nullable(Timestamp, 'The time of the last check'),
  next_check_at: nullable(Timestamp, 'The time of the next check; null if none is planned'),
  open_tracking: Type.Boolean({ description: 'Whether opens of email from it are tracked' }),
  click_tracking: Type.Boolean({ description: 'Whether clicks on links in email from it are tracked' }),
};

export const DomainSummary = objectOf('DomainSummary', domain);

const record = objectOf('DomainRecord', {
  record: enumOf(RECORD_KINDS, 'DomainRecordKind', 'The purpose of the record'),
  type: Type.Enum(['TXT', 'CNAME']),
  name: Type.String({ description: 'The full name; many DNS providers append the domain themselves' }),
  value: Type.String(),
  priority: nullable(Type.Integer(), 'Always null: records of these types have no priority'),
  ttl: Type.Integer({ description: 'Seconds, as advice' }),
  required: Type.Boolean({ description: 'Whether verification requires the record; the others are recommended' }),
  status: enumOf(
    RECORD_STATUSES,
    'DomainRecordStatus',
    '`pending`: missing, or not checked yet. `verified`: correct. `failed`: present, but wrong.',
  ),
  found: nullable(Type.Array(Type.String()), 'The values in DNS, none or several; null before the first answer'),
  error: nullable(Type.String(), 'What to change'),
});

export const DomainBody = objectOf('Domain', {
  ...domain,
  records: Type.Array(record, {
    description: 'The DNS records of the domain, with the result of the last check of each',
  }),
});
