import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { metaRequest, twilioRequest } from '../http/provider-callbacks.ts';
import { type Answer, POSTMARK_AUTHORIZATION, useService } from '../http/service.ts';
import * as records from '../providers/postmark-records.ts';
import { edited, hostileEdits, hostileText, hostileValue, REFUSED_EVERYWHERE, textsOf } from './hostile.ts';

/** Routes without an API key that /openapi.json omits: callbacks of providers and unsubscribe links. */
const RUNS = 500;
const PUBLIC_URL = 'https://mail.example';
const FORM = 'application/x-www-form-urlencoded';

const service = await useService({ publicUrl: PUBLIC_URL });
const ours = await service.organization();
const id = await ours.sent();

function assertStatus(what: string, { status, text }: Answer, statuses: readonly number[]): void {
  assert.ok(statuses.includes(status), `${what}: ${status} ${text}`);
}

/** Runs the work. The log contains no error of it, and the email is still there. */
async function withoutErrors(work: () => Promise<void>): Promise<void> {
  const firstLine = service.log.length;
  await work();
  const errors = service.log.slice(firstLine).filter((line) => (JSON.parse(line) as { level: number }).level >= 50);
  assert.deepEqual(errors, []);
  assert.equal((await ours.email(id))['id'], id);
}

const fuzz = (property: fc.IAsyncProperty<unknown>) =>
  withoutErrors(async () => {
    await fc.assert(property, { numRuns: RUNS });
  });

/** A text without lone surrogates, which a form cannot contain. */
const wellFormed = (text: string): string => text.toWellFormed();

describe('without a valid signature', () => {
  it(`callbacks are refused and change nothing, with any content, ${RUNS} times`, async () => {
    const path = fc.constantFrom('/callbacks/postmark', '/callbacks/twilio', '/callbacks/meta');
    const name = fc.constantFrom('authorization', 'x-twilio-signature', 'x-hub-signature-256', 'x-other');
    const forged = fc.uint8Array({ minLength: 32, maxLength: 32 }).chain((bytes) => {
      const [hex, base64] = (['hex', 'base64'] as const).map((form) => Buffer.from(bytes).toString(form));
      return fc.constantFrom(`sha256=${hex ?? ''}`, `Basic ${base64 ?? ''}`, base64 ?? '');
    });
    const printable = hostileText.map((text) => text.replace(/[^\x20-\x7E]/gu, ''));
    const type = fc.constantFrom('application/json', FORM, 'text/plain', '');
    const signature = fc.oneof(printable, forged);
    await fuzz(
      fc.asyncProperty(path, name, signature, type, hostileValue, async (url, header, value, contentType, json) => {
        const headers = { 'content-type': contentType, [header]: value };
        const answer = await service.call('POST', url, { raw: JSON.stringify(json), headers });
        assertStatus(url, answer, [401, 413, 415]);
      }),
    );
    assert.equal((await ours.email(id))['status'], 'queued');
  });

  it(`a random or forged unsubscribe link returns 404, ${RUNS} times`, async () => {
    // Dots alone are steps in a path.
    const text = hostileText.filter((each) => !/^\.{0,2}$/.test(each));
    const forged = fc
      .tuple(fc.nat({ max: 2 }), fc.uint8Array({ minLength: 16, maxLength: 16 }))
      .map(([position, signature]) => `${id}.${position}.${Buffer.from(signature).toString('base64url')}`);
    const token = fc.oneof(
      text.map((each) => encodeURIComponent(wellFormed(each))),
      forged,
    );
    const method = fc.constantFrom('GET', 'POST', 'HEAD', 'PUT', 'DELETE');
    await fuzz(
      fc.asyncProperty(method, token, hostileText, async (verb, part, value) => {
        const raw = new URLSearchParams({ 'List-Unsubscribe': wellFormed(value) }).toString();
        const answer = await service.call(verb, `/unsubscribe/${part}`, {
          ...(verb === 'POST' && { raw, headers: { 'content-type': FORM } }),
        });
        // 413: a long text is longer still as a form.
        assertStatus(`${verb} ${part}`, answer, [404, 405, 413]);
      }),
    );
    const { rows } = await service.pool.query('SELECT FROM suppressions WHERE org_id = $1', [ours.id]);
    assert.equal(rows.length, 0);
  });
});

describe('a callback with a valid signature causes no error', () => {
  const STATUSES = [200, 400, 401, 404, 405, 413, 415, 422];
  const postmarkRecords = Object.values(records)
    .filter((record) => typeof record === 'object')
    .map((record) => ({ ...record, Metadata: { email: id } }));
  const status = { id: 'wamid.1', status: 'delivered', timestamp: '1772361000', recipient_id: '14165550123' };
  const metaBody = { entry: [{ changes: [{ value: { statuses: [{ ...status, errors: [{ code: 131026 }] }] } }] }] };

  async function postPostmark(json: unknown): Promise<void> {
    const answer = await service.call('POST', '/callbacks/postmark', {
      json,
      headers: { authorization: POSTMARK_AUTHORIZATION },
    });
    assertStatus(JSON.stringify(json), answer, STATUSES);
  }

  async function postMeta(json: unknown): Promise<void> {
    const raw = JSON.stringify(json);
    assertStatus(raw, await service.call('POST', '/callbacks/meta', metaRequest(raw)), STATUSES);
  }

  it(`from Postmark, with random changes, ${RUNS} times`, async () => {
    assert.ok(postmarkRecords.length >= 6, `${postmarkRecords.length} types of records`);
    await fuzz(
      fc.asyncProperty(fc.constantFrom(...postmarkRecords), hostileEdits, (record, edits) =>
        postPostmark(edited(record, edits)),
      ),
    );
  });

  it(`from Meta, with random changes, ${RUNS} times`, async () => {
    await fuzz(fc.asyncProperty(hostileEdits, (edits) => postMeta(edited(metaBody, edits))));
  });

  it('from Postmark or Meta, with text that Postgres cannot store in any field', async () => {
    await withoutErrors(async () => {
      for (const text of REFUSED_EVERYWHERE) {
        for (const record of postmarkRecords) for (const place of textsOf(record)) await postPostmark(place.put(text));
        for (const place of textsOf(metaBody)) await postMeta(place.put(text));
      }
    });
  });

  it(`from Twilio, with random changes, ${RUNS} times`, async () => {
    const form = { MessageSid: 'SM1', AccountSid: 'AC1', MessageStatus: 'delivered', From: 'whatsapp:+12025550142' };
    const field = fc.tuple(fc.oneof(fc.constantFrom(...Object.keys(form)), hostileText), hostileText);
    const message = fc.option(hostileText.map(wellFormed), { nil: undefined });
    await fuzz(
      fc.asyncProperty(fc.array(field, { maxLength: 4 }), message, async (fields, m) => {
        // Twilio posts one value for each name.
        const params = Object.fromEntries(
          [...Object.entries(form), ...fields].map(([name, value]) => [name, wellFormed(value)]),
        );
        const path = `/callbacks/twilio${m === undefined ? '' : `?m=${encodeURIComponent(m)}`}`;
        const request = twilioRequest(PUBLIC_URL + path, params);
        assertStatus(`${path} ${request.raw}`, await service.call('POST', path, request), STATUSES);
      }),
    );
  });
});
