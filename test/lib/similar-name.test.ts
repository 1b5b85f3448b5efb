import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findSimilarName } from '../../src/lib/similar-name.ts';

const EMAIL = 'from to cc bcc reply_to subject html text marketing tags headers scheduled_at attachments'.split(' ');
const LIST = 'limit cursor tag status batch_id to from subject created_after created_before bounce_reason'.split(' ');
const FILE = ['filename', 'content', 'path', 'content_type', 'content_id'];

describe('findSimilarName finds the field that was meant', () => {
  for (const [meant, candidates, names] of [
    ['reply_to', EMAIL, ['replyTo', 'ReplyTo', 'reply-to', 'replyto', 'reply_too', 'replyToEmail']],
    [
      'scheduled_at',
      EMAIL,
      ['send_at', 'sendAt', 'scheduledAt', 'schedule_at', 'deliver_at', 'sheduled_at', 'sendTime'],
    ],
    ['subject', EMAIL, ['Subject', 'subjct', 'sbuject', 'title']],
    ['html', EMAIL, ['HtmlBody', 'html_body', 'HTML', 'htlm']],
    ['text', EMAIL, ['TextBody', 'body', 'message', 'txt']],
    ['from', EMAIL, ['form', 'from_email', 'sender']],
    ['to', EMAIL, ['To', 'recipients', 'to_email']],
    ['tags', EMAIL, ['tag', 'categories']],
    ['attachments', EMAIL, ['attachment', 'Attachments', 'files', 'attachements']],
    ['headers', EMAIL, ['header', 'custom_headers']],
    ['cursor', LIST, ['page', 'offset', 'page_token']],
    ['limit', LIST, ['per_page', 'page_size', 'pageSize', 'limt']],
    ['batch_id', LIST, ['batchId', 'batch']],
    ['content_type', FILE, ['contentType', 'type', 'mime_type']],
    ['content', FILE, ['data', 'Content']],
    ['filename', FILE, ['name', 'file_name', 'Filename']],
  ] as const) {
    for (const name of names) it(`${name} is ${meant}`, () => assert.equal(findSimilarName(name, candidates), meant));
  }

  for (const name of [
    'x',
    'q',
    '',
    '_',
    'priority',
    'track_opens',
    'created_at',
    'message_id',
    'a'.repeat(1_000_000),
  ]) {
    it(`nothing is like ${JSON.stringify(name.slice(0, 20))} in an email`, () =>
      assert.equal(findSimilarName(name, EMAIL), undefined));
  }

  it('has no candidates in an object without fields', () => assert.equal(findSimilarName('to', []), undefined));
});
