import { Type } from 'typebox';
import { DOMAINS_PER_KEY, KEY_NAME_LENGTH, RANGES_PER_KEY } from '../../domain/limits.ts';
import { PRESETS } from '../../store/accounts/keys.ts';
import { closedObject, enumOf, nullable, objectOf, optional, Timestamp } from './common.ts';

const PRESET =
  '`full_access`: everything. `sending_access`: send, reschedule and cancel, but read nothing. `read_only`: read everything but keys and the log of requests, and change nothing';
const DOMAINS =
  'The only domains it may send email from; such a key sends no chat-app messages or SMS. Reading is not limited. Null means all domains';
const RANGES = 'Addresses and ranges from which the key may be used; null means all';

export const IssueKeyBody = closedObject('CreateApiKeyRequest', 'A key', {
  preset: enumOf(PRESETS, 'ApiKeyPreset', PRESET, 'sending_access'),
  name: optional('string', {
    minLength: 1,
    maxLength: KEY_NAME_LENGTH,
    'x-rule': 'one-line',
    description: 'For people',
    examples: ['Shop, production'],
  }),
  domain_ids: optional<string[]>('array', {
    minItems: 1,
    maxItems: DOMAINS_PER_KEY,
    items: { type: 'string', 'x-rule': 'one-line' },
    description: DOMAINS,
  }),
  expires_at: optional('string', {
    'x-rule': 'instant',
    description: 'ISO 8601 instant with an offset, in the future; the key is refused from then on; null means never',
    examples: ['2026-03-31T23:59:59Z'],
  }),
  allowed_ips: optional<string[]>('array', {
    minItems: 1,
    maxItems: RANGES_PER_KEY,
    items: { type: 'string', 'x-rule': 'ip-range' },
    description: RANGES,
    examples: [['203.0.113.7', '2001:db8::/32']],
  }),
});

export const KeyParams = Type.Object({ id: Type.String({ examples: ['key_01kajcg3t5z7b9d1f3h5k7m9pq'] }) });

const key = {
  id: Type.String(),
  name: nullable(Type.String(), 'For people'),
  preset: enumOf(PRESETS, 'ApiKeyPreset', PRESET),
  domain_ids: nullable(Type.Array(Type.String()), DOMAINS),
  expires_at: nullable(Timestamp, 'The key is refused from then on; null means never'),
  allowed_ips: nullable(Type.Array(Type.String()), RANGES),
  last_used_at: nullable(Timestamp, 'To about a minute; null if it was never used'),
  created_at: Timestamp,
};

export const KeyBody = objectOf('ApiKey', key);

export const IssuedKey = objectOf('CreatedApiKey', {
  ...key,
  api_key: Type.String({ description: 'The key itself, which only this response contains' }),
});
