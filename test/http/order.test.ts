import { after, before, describe, it } from 'node:test';
import { assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';
import { head, speak } from './socket.ts';

/** Requests with two mistakes: the answer is about the one that is looked for first. */
let service: Service;
let ours: Organization;
let readOnly: string;
let limited: string;
before(async () => {
  service = await startService();
  ours = await service.organization();
  readOnly = await ours.addKey('read_only');
  limited = await ours.addKey('full_access', [ours.domain]);
  await ours.addDomain('other.example');
  await ours.addDomain('pending.example', false);
});
after(() => service.close());

const JSON_TYPE = 'Content-Type: application/json';
const TEXT_TYPE = 'Content-Type: text/plain';
const TOO_LONG = 'Content-Length: 60000000';
const NO_KEY = 'sw_live_00000000000000000000000000_'.padEnd(99, '0');

async function onSocket(path: string, key: string | undefined, ...lines: string[]) {
  return speak(service.port, `${head(path, key, ...lines)}{`);
}

function post(key: string | undefined, raw: string, type = 'application/json', path = '/v1/emails') {
  return service.call('POST', path, { key, raw, headers: { 'content-type': type } });
}

describe('401, 403 scope, 413, 415, 400 invalid_json, 422 fields, 403 domain, 202', () => {
  it('401 before 404', async () => {
    assertRefused(await service.call('GET', '/v1/nothing'), 401, 'unauthorized');
  });
  it('401 before 405', async () => {
    assertRefused(await service.call('DELETE', '/v1/emails'), 401, 'unauthorized');
  });
  it('401 before 413', async () => {
    assertRefused(await onSocket('/v1/emails', undefined, JSON_TYPE, TOO_LONG), 401, 'unauthorized');
    assertRefused(await onSocket('/v1/emails', NO_KEY, JSON_TYPE, TOO_LONG), 401, 'unauthorized');
  });
  it('401 before 415', async () => {
    assertRefused(await post(undefined, 'x', 'text/plain'), 401, 'unauthorized');
  });
  it('401 before 400', async () => {
    assertRefused(await post(NO_KEY, '{'), 401, 'unauthorized');
  });
  it('401 before 422', async () => {
    assertRefused(await post(NO_KEY, '{}', undefined, '/v1/emails?x=1'), 401, 'unauthorized');
  });
  it('404 and 405 before anything about the body', async () => {
    for (const [raw, type] of [
      ['{', 'application/json'],
      ['x', 'text/plain'],
    ] as const) {
      assertRefused(await post(ours.key, raw, type, '/v1/nothing'), 404, 'not_found');
      assertRefused(await post(ours.key, raw, type, '/v1/emails/em_1'), 405, 'method_not_allowed');
    }
  });
  it('405 before 403 scope', async () => {
    assertRefused(await service.call('DELETE', '/v1/emails', { key: readOnly }), 405, 'method_not_allowed');
  });
  it('403 scope before 413', async () => {
    assertRefused(await onSocket('/v1/emails', readOnly, JSON_TYPE, TOO_LONG), 403, 'insufficient_scope');
  });
  it('403 scope before 415', async () => {
    assertRefused(await post(readOnly, 'x', 'text/plain'), 403, 'insufficient_scope');
  });
  it('403 scope before 400', async () => {
    assertRefused(await post(readOnly, '{'), 403, 'insufficient_scope');
  });
  it('403 scope before 422', async () => {
    assertRefused(await post(readOnly, '{}', undefined, '/v1/emails?x=1'), 403, 'insufficient_scope');
  });
  it('403 scope before 404 of an email', async () => {
    assertRefused(await service.call('POST', '/v1/emails/em_1/cancel', { key: readOnly }), 403, 'insufficient_scope');
  });
  it('413 before 415', async () => {
    assertRefused(await onSocket('/v1/emails', ours.key, TEXT_TYPE, TOO_LONG), 413, 'payload_too_large');
    assertRefused(await onSocket('/v1/emails', ours.key, TOO_LONG), 413, 'payload_too_large');
  });
  it('413 before 422 of the query', async () => {
    assertRefused(await onSocket('/v1/emails?x=1', ours.key, JSON_TYPE, TOO_LONG), 413, 'payload_too_large');
  });
  it('415 before 400', async () => {
    assertRefused(await post(ours.key, '{', 'text/plain'), 415, 'unsupported_media_type');
  });
  it('415 before 422', async () => {
    assertRefused(await post(ours.key, '{}', 'text/plain', '/v1/emails?x=1'), 415, 'unsupported_media_type');
  });
  it('400 before 422', async () => {
    assertRefused(await post(ours.key, '{"from":5', undefined, '/v1/emails?x=1'), 400, 'invalid_json');
  });
  it('422 fields before 403 domain', async () => {
    for (const domain of ['nobody.example', 'pending.example']) {
      const from = `a@${domain}`;
      assertRefused(await ours.send({ from, subject: '' }), 422, 'validation_error', 'subject');
      assertRefused(await ours.send({ from, unknown: 1 }), 422, 'validation_error', 'unknown');
      const past = inFuture({ hours: -1 });
      assertRefused(await ours.send({ from, scheduled_at: past }), 422, 'validation_error', 'scheduled_at');
      const far = inFuture({ days: 31 });
      assertRefused(await ours.send({ from, scheduled_at: far }), 422, 'validation_error', 'scheduled_at');
    }
  });
  it("422 fields before 403 for a key's domains", async () => {
    const json = ours.mail({ from: 'a@other.example', subject: '' });
    const answer = await service.call('POST', '/v1/emails', { key: limited, json });
    assertRefused(answer, 422, 'validation_error', 'subject');
  });
});
