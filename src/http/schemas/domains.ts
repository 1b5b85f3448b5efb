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

export const EditDomainBody = closedObject('EditDomainRequest', 'What to change of a domain; what is left out stays', {
  open_tracking: optional<boolean>('boolean', { description: 'Whether opens of email from it are tracked' }),
  click_tracking: optional<boolean>('boolean', { description: 'Whether clicks on links in email from it are tracked' }),
});

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
  last_checked_at: nullable(Timestamp, 'When DNS was last asked'),
  next_check_at: nullable(Timestamp, 'When it will be asked again; null when that is not planned'),
  open_tracking: Type.Boolean({ description: 'Whether opens of email from it are tracked' }),
  click_tracking: Type.Boolean({ description: 'Whether clicks on links in email from it are tracked' }),
};

export const DomainSummary = objectOf('DomainSummary', domain);

const record = objectOf('DomainRecord', {
  record: enumOf(RECORD_KINDS, 'DomainRecordKind', 'What it is for'),
  type: Type.Enum(['TXT', 'CNAME']),
  name: Type.String({ description: 'In full; many DNS providers add the domain themselves' }),
  value: Type.String(),
  priority: nullable(Type.Integer(), 'Null: none of these types has one'),
  ttl: Type.Integer({ description: 'Seconds, as advice' }),
  required: Type.Boolean({ description: 'Whether the domain cannot be verified without it; the others are advice' }),
  status: enumOf(
    RECORD_STATUSES,
    'DomainRecordStatus',
    '`pending`: not there yet, or not asked for. `verified`: right. `failed`: there, and wrong.',
  ),
  found: nullable(
    Type.Array(Type.String()),
    'What DNS answered, none or several values; null when it has not answered yet',
  ),
  error: nullable(Type.String(), 'What to change'),
});

export const DomainBody = objectOf('Domain', {
  ...domain,
  records: Type.Array(record, { description: 'The DNS records that the domain needs, and what was found for each' }),
});
