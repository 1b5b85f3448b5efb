import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import { type Answer, CALLBACK, CHAT_CALLBACKS, useService } from '../http/service.ts';
import * as records from '../providers/postmark-records.ts';
import { edited, hostileEdits, hostileText, hostileValue, NOWHERE, textsOf } from './hostile.ts';

/** What anybody may call without a key and /openapi.json does not tell of: providers' callbacks and unsubscribe links. */
const RUNS = 500;
const PUBLIC_URL = 'https://mail.example';

const service = await useService({ publicUrl: PUBLIC_URL });
const ours = await service.organization();
const id = await ours.sent();

function assertOrderly(what: string, { status, text }: Answer): void {
  assert.ok([200, 400, 401, 404, 405, 413, 415, 422].includes(status), `${what}: ${status} ${text}`);
}

/** Runs it many times, without harm. */
async function oftenWithoutHarm(property: fc.IAsyncProperty<unknown>): Promise<void> {
  await withoutHarm(() => fc.assert(property, { numRuns: RUNS }));
}

/** Does it, and finds no error in the log, and the email still there. */
async function withoutHarm(work: () => Promise<void>): Promise<void> {
  const began = service.log.length;
  await work();
  const errors = service.log.slice(began).filter((line) => (JSON.parse(line) as { level: number }).level >= 50);
  assert.deepEqual(errors, []);
  assert.equal((await ours.email(id))['id'], id);
}

describe('a callback that is signed as it must be', () => {
  const basic = `Basic ${Buffer.from(`${CALLBACK.user}:${CALLBACK.password}`).toString('base64')}`;
  const postmarkRecords = Object.values(records).filter((record) => typeof record === 'object');
  const aboutOurs = (record: object) => ({ ...record, Metadata: { email: id } });
  const status = { id: 'wamid.1', status: 'delivered', timestamp: '1772361000', recipient_id: '14165550123' };
  const metaBody = { entry: [{ changes: [{ value: { statuses: [{ ...status, errors: [{ code: 131026 }] }] } }] }] };

  async function postmarkPosts(json: unknown): Promise<void> {
    const answer = await service.call('POST', '/callbacks/postmark', { json, headers: { authorization: basic } });
    assertOrderly(JSON.stringify(json), answer);
  }

  async function metaPosts(json: unknown): Promise<void> {
    const raw = JSON.stringify(json);
    const signature = createHmac('sha256', CHAT_CALLBACKS.metaAppSecret).update(raw).digest('hex');
    const headers = { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` };
    assertOrderly(raw, await service.call('POST', '/callbacks/meta', { raw, headers }));
  }

  it(`of Postmark, with anything in it, ${RUNS} times`, async () => {
    assert.ok(postmarkRecords.length >= 6, 'there are records of every type');
    await oftenWithoutHarm(
      fc.asyncProperty(fc.constantFrom(...postmarkRecords), hostileEdits, (record, edits) =>
        postmarkPosts(edited(aboutOurs(record), edits)),
      ),
    );
  });

  it('of Postmark and of Meta, with what Postgres cannot hold in any one of its texts', async () => {
    await withoutHarm(async () => {
      for (const text of NOWHERE) {
        for (const record of postmarkRecords) {
          for (const place of textsOf(aboutOurs(record))) await postmarkPosts(place.put(text));
        }
        for (const place of textsOf(metaBody)) await metaPosts(place.put(text));
      }
    });
  });

  it(`of Twilio, with anything in it, ${RUNS} times`, async () => {
    const form = { MessageSid: 'SM1', AccountSid: 'AC1', MessageStatus: 'delivered', From: 'whatsapp:+12025550142' };
    const aField = fc.tuple(fc.oneof(fc.constantFrom(...Object.keys(form)), hostileText), hostileText);
    await oftenWithoutHarm(
      fc.asyncProperty(fc.array(aField, { maxLength: 4 }), seldom(hostileText.map(formed)), async (fields, m) => {
        // One value of each name, as Twilio posts.
        const params = new Map([...Object.entries(form), ...fields].map(([name, value]) => [name, formed(value)]));
        const path = `/callbacks/twilio${m === undefined ? '' : `?m=${encodeURIComponent(m)}`}`;
        const sorted = [...params].sort(([a], [b]) => (a < b ? -1 : 1));
        const text = PUBLIC_URL + path + sorted.flat().join('');
        const answer = await service.call('POST', path, {
          raw: new URLSearchParams([...params]).toString(),
          headers: {
            'content-type': 'application/x-www-form-urlencoded',
            'x-twilio-signature': createHmac('sha1', CHAT_CALLBACKS.twilioAuthToken).update(text).digest('base64'),
          },
        });
        assertOrderly(text, answer);
      }),
    );
  });

  it(`of Meta, with anything in it, ${RUNS} times`, async () => {
    await oftenWithoutHarm(fc.asyncProperty(hostileEdits, (edits) => metaPosts(edited(metaBody, edits))));
  });
});

describe('without any signature', () => {
  before(async () => {
    ours = await service.organization();
    id = await ours.sent();
  });

  it(`callbacks are refused and change nothing, whatever they hold, ${RUNS} times`, async () => {
    const path = fc.constantFrom('/callbacks/postmark', '/callbacks/twilio', '/callbacks/meta');
    const name = fc.constantFrom('authorization', 'x-twilio-signature', 'x-hub-signature-256', 'x-other');
    // Some look like signatures, and are somebody else's.
    const forged = fc.uint8Array({ minLength: 32, maxLength: 32 }).chain((bytes) => {
      const [hex, base64] = (['hex', 'base64'] as const).map((form) => Buffer.from(bytes).toString(form));
      return fc.constantFrom(`sha256=${hex ?? ''}`, `Basic ${base64 ?? ''}`, base64 ?? '');
    });
    const value = fc.oneof(
      hostileText.map((text) => text.replace(/[^\x20-\x7E]/gu, '')),
      forged,
    );
    const type = fc.constantFrom('application/json', 'application/x-www-form-urlencoded', 'text/plain', '');
    await oftenWithoutHarm(
      fc.asyncProperty(path, name, value, type, hostileValue, async (address, header, given, contentType, json) => {
        const headers = { 'content-type': contentType, [header]: given };
        const answer = await service.call('POST', address, { raw: JSON.stringify(json), headers });
        assert.ok([401, 413, 415].includes(answer.status), `${address}: ${answer.status} ${answer.text}`);
      }),
    );
    assert.equal((await ours.email(id))['status'], 'queued');
  });

  it(`an unsubscribe link that nobody made is not there, ${RUNS} times`, async () => {
    // Dots alone are steps in a path, and lead elsewhere.
    const text = hostileText.filter((each) => !/^\.{0,2}$/.test(each)).map((each) => encodeURIComponent(formed(each)));
    // Of an email that is there, with a signature that is not its own.
    const forged = fc
      .tuple(fc.nat({ max: 2 }), fc.uint8Array({ minLength: 16, maxLength: 16 }))
      .map(([position, signature]) => `${id}.${position}.${Buffer.from(signature).toString('base64url')}`);
    const token = fc.oneof(text, forged);
    const method = fc.constantFrom('GET', 'POST', 'HEAD', 'PUT', 'DELETE');
    await oftenWithoutHarm(
      fc.asyncProperty(method, token, hostileText, async (verb, part, value) => {
        const raw =
          verb === 'POST' ? { raw: new URLSearchParams({ 'List-Unsubscribe': formed(value) }).toString() } : {};
        const headers = verb === 'POST' ? { 'content-type': 'application/x-www-form-urlencoded' } : {};
        const answer = await service.call(verb, `/unsubscribe/${part}`, { ...raw, headers });
        // 413: an overlong text takes more room still as a form.
        assert.ok([404, 405, 413].includes(answer.status), `${verb} ${part}: ${answer.status} ${answer.text}`);
      }),
    );
    const { rows } = await service.pool.query('SELECT FROM suppressions WHERE org_id = $1', [ours.id]);
    assert.equal(rows.length, 0, 'nobody was unsubscribed');
  });
});

/** A text that is Unicode: what is none cannot be sent as a form. */
function formed(text: string): string {
  return text.toWellFormed();
}

function seldom<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}
