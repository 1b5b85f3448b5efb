import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNamed, missingTests, readTestTable, type TestRow } from './support/test-table.ts';

/**
 * The rules of the interface, kept here so that none drops out of test/README.md: those of what is built, each of which
 * must name a test, and those of what is not. A rule moves up when its part is built.
 */
const BUILT = list(`
  Identifiers; Timestamps; Email fields; Email summary fields; Attachment metadata; Bounce reasons, values;
  Batch fields; Tag count fields; Email statuses; Status queued; Status scheduled; Status sent;
  Status delivery_delayed; Status delivered; Status opened; Status clicked; Status bounced; Status complained;
  Status canceled; Status rejected; Status failed; Transition, new to queued; Transition, new to scheduled;
  Transition, queued to sent; Transition, queued to queued; Transition, queued to failed;
  Transition, scheduled to scheduled; Transition, scheduled to canceled; Transition, sent to what is reported;
  States 1; States 3; States 4; States 5; States 6; Send Email, from; Send Email, to; Send Email, cc;
  Send Email, bcc; Send Email, reply_to; Send Email, subject; Send Email, html; Send Email, text;
  Send Email, marketing; Send Email, tags; Send Email, headers; Send Email, scheduled_at; Send Email, attachments;
  Send Email, required fields; Send Email, a body; Send Email, answer; Custom headers 1; Custom headers 2;
  Custom headers 3; Custom headers 4; Idempotency 1; Idempotency 2; Idempotency 3; Idempotency 4; Idempotency 5;
  Idempotency 6; Idempotency 7; Attachment, filename; Attachment, content; Attachment, path;
  Attachment, content_type; Attachment, content_id; Attachments 1; Attachments 2; Attachments 3; Attachments 4;
  Attachments 5; Send Batch, emails; Send Batch, mix; Send Batch, all or nothing; Send Batch, idempotency;
  Send Batch, answer; Send Batch, progress; Get Email, answer; Reschedule, body; Reschedule, answer; Cancel, answer;
  List Emails, order; List Emails, tag; List Emails, status; List Emails, batch_id; List Emails, limit;
  List Emails, cursor; List Emails, answer; List Emails, malformed query; List Tags, answer;
  Attachments endpoints, list; Attachments endpoints, single; Attachments endpoints, expiry; Authentication 1;
  Authentication 2; Authentication 3; Authentication 4; Authentication 5; Events 1; Events 2; Events 6;
  Errors, envelope; Errors, invalid_json; Errors, invalid_idempotency_key; Errors, unauthorized;
  Errors, domain_not_found; Errors, domain_not_verified; Errors, not_found; Errors, invalid_idempotent_request;
  Errors, concurrent_idempotent_requests; Errors, payload_too_large; Errors, validation_error;
  Errors, invalid_attachment; Errors, not_scheduled; Errors, internal_error; Limits, recipients; Limits, subject;
  Limits, html and text; Limits, tags; Limits, custom headers; Limits, scheduling horizon; Limits, attachments;
  Limits, attachment filename; Limits, content id; Limits, request body; Limits, attachment fetch;
  Limits, attachment retention; Limits, download link; Limits, emails per batch; Limits, idempotency key;
  Limits, page size; Limits, tag filters; Versioning 1; Bounce reasons, suppression; Bounce reasons, derivation;
  Status suppressed; Transition, queued to failed, webhook;
  Transition, sent to what is reported, bounces and complaints; States 2; States 4, suppressed;
  Send Email, marketing, effect; Custom headers 5; Events 2, webhook; Events 4; Events 5; Events 7; Events 8;
  Events 10; Chat-app message fields; States 7; Send Chat-app Message; Authentication 4, chat-app; Events 9;
  Errors, no_chatapp_account; Limits, chat-app text; Limits, quota;
  Authentication 3, dashboard; Events 3
`);
const NOT_BUILT = list(`
  Versioning 2
`);

const NOT_BUILT_YET = 'not built yet';

function list(text: string): string[] {
  return text
    .split(';')
    .map((rule) => rule.trim().replace(/\s+/g, ' '))
    .filter((rule) => rule !== '');
}

const rows = await readTestTable('test/README.md');
const rulesOf = (wanted: (row: TestRow) => boolean) => [...new Set(rows.filter(wanted).map(({ rule }) => rule))].sort();

test('every rule of what is built has a test, and those of the rest are marked', () => {
  assert.equal(new Set([...BUILT, ...NOT_BUILT]).size, BUILT.length + NOT_BUILT.length, 'each rule stands here once');
  assert.deepEqual(
    rulesOf(({ file }) => file !== NOT_BUILT_YET),
    [...BUILT].sort(),
  );
  assert.deepEqual(
    rulesOf(({ file }) => file === NOT_BUILT_YET),
    [...NOT_BUILT].sort(),
  );
});

test('every file that is named is there and has the test', async () => {
  for (const { rule, name } of rows.filter(({ file }) => file === NOT_BUILT_YET)) assert.equal(name, '', rule);
  assert.deepEqual(await missingTests(rows.filter(({ file }) => file !== NOT_BUILT_YET)), []);
});

test('a renamed test is found', () => {
  const source = "it('is kept') it(`${what} is refused`) it(`403 ${code}: no`)";
  for (const name of ['is kept', '… is refused', '403 …']) assert.ok(isNamed(source, name), name);
  for (const name of ['is', 'kept', 'is kept…', '… refused', '403…', '… is', 'no']) {
    assert.ok(!isNamed(source, name), name);
  }
});
