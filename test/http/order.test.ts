import { describe, it } from 'node:test';
import { type Answer, assertRefused, inFuture, useService } from './service.ts';
import { head, sendBytes } from './socket.ts';

const service = await useService();
const ours = await service.organization();
const readOnly = await ours.addKey('read_only');
const limited = await ours.addKey('full_access', [ours.domain]);
await ours.addDomain('other.example');
await ours.addDomain('pending.example', false);

const NO_KEY = 'sw_live_00000000000000000000000000_'.padEnd(99, '0');
const JSON_TYPE = 'application/json';

const call = (method: string, path: string, key?: string) => () => service.call(method, path, { key });
const post = (key: string | undefined, raw: string, type = JSON_TYPE, path = '/v1/emails') => {
  return () => service.call('POST', path, { key, raw, headers: { 'content-type': type } });
};
const withEmptyKey = (key: string | undefined, raw: string, type = JSON_TYPE) => {
  const headers = { 'content-type': type, 'idempotency-key': '' };
  return () => service.call('POST', '/v1/emails', { key, raw, headers });
};
/** A request whose Content-Length exceeds the limit. */
const tooLong = (key: string | undefined, type: string, path = '/v1/emails') => {
  const lines = [`Content-Type: ${type}`, 'Content-Length: 60000000'];
  return () => sendBytes(service.port, `${head(path, key, ...lines)}{`);
};
const send = (fields: Record<string, unknown>, key = ours.key) => {
  return () => service.call('POST', '/v1/emails', { key, json: ours.mail(fields) });
};

/** Requests with two mistakes, and the error that takes precedence. */
const CASES: readonly (readonly [name: string, request: () => Promise<Answer>, error: string, param?: string])[] = [
  ['401 before 404', call('GET', '/v1/nothing'), '401 unauthorized'],
  ['401 before 405', call('DELETE', '/v1/emails'), '401 unauthorized'],
  ['401 for a missing key before 413', tooLong(undefined, JSON_TYPE), '401 unauthorized'],
  ['401 before 400', post(NO_KEY, '{'), '401 unauthorized'],
  ['401 before 422', post(NO_KEY, '{}', JSON_TYPE, '/v1/emails?x=1'), '401 unauthorized'],
  ['404 before 400', post(ours.key, '{', JSON_TYPE, '/v1/nothing'), '404 not_found'],
  ['405 before 400', post(ours.key, '{', JSON_TYPE, '/v1/emails/em_1'), '405 method_not_allowed'],
  ['405 before 403 for the scope', call('DELETE', '/v1/emails', readOnly), '405 method_not_allowed'],
  ['403 for the scope before 413', tooLong(readOnly, JSON_TYPE), '403 insufficient_scope'],
  ['403 for the scope before 400', post(readOnly, '{'), '403 insufficient_scope'],
  ['403 for the scope before 422', post(readOnly, '{}', JSON_TYPE, '/v1/emails?x=1'), '403 insufficient_scope'],
  ['403 for the scope before 404', call('POST', '/v1/emails/em_1/cancel', readOnly), '403 insufficient_scope'],
  ['413 before 415', tooLong(ours.key, 'text/plain'), '413 payload_too_large'],
  ['413 before 422', tooLong(ours.key, JSON_TYPE, '/v1/emails?x=1'), '413 payload_too_large'],
  ['415 before 400', post(ours.key, '{', 'text/plain'), '415 unsupported_media_type'],
  ['415 before 422', post(ours.key, '{}', 'text/plain', '/v1/emails?x=1'), '415 unsupported_media_type'],
  ['401 before 400 for the idempotency key', withEmptyKey(undefined, '{}'), '401 unauthorized'],
  ['415 before 400 for the idempotency key', withEmptyKey(ours.key, 'x', 'text/plain'), '415 unsupported_media_type'],
  ['400 for the body before 400 for the idempotency key', withEmptyKey(ours.key, '{'), '400 invalid_json'],
  ['400 for the idempotency key before 422', withEmptyKey(ours.key, '[]'), '400 invalid_idempotency_key'],
  ['400 before 422', post(ours.key, '{"from":5', JSON_TYPE, '/v1/emails?x=1'), '400 invalid_json'],
  ...['unregistered.example', 'pending.example'].flatMap((domain) => {
    const from = `a@${domain}`;
    return [
      ['subject', { subject: '' }],
      ['unknown', { unknown: 1 }],
      ['scheduled_at', { scheduled_at: inFuture({ hours: -1 }) }],
      ['scheduled_at', { scheduled_at: inFuture({ days: 31 }) }],
    ].map(([param, fields]) => {
      const name = `422 for ${JSON.stringify(fields)} before 403 for ${domain}`;
      return [name, send({ from, ...(fields as object) }), '422 validation_error', param as string] as const;
    });
  }),
  [
    "422 before 403 for a key's domains",
    send({ from: 'a@other.example', subject: '' }, limited),
    '422 validation_error',
    'subject',
  ],
];

describe('a request with two mistakes gets', () => {
  for (const [name, request, error, param] of CASES) {
    it(name, async () => {
      const [status, code = ''] = error.split(' ');
      assertRefused(await request(), Number(status), code, param);
    });
  }
});
