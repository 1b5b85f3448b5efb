import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { newId } from '../../src/domain/ids.ts';
import type { SuppressionOrigin } from '../../src/domain/email/suppression.ts';
import { type Answer, assertRefused, type Organization, type Service, startService, TIMESTAMP } from './service.ts';
import { address, bodyOf, pageOf, putSuppression, type Page } from './suppressed.ts';

let service: Service;
let ours: Organization;
let theirs: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
  theirs = await service.organization();
});
after(() => service.close());

const PATH = '/v1/suppressions';
const add = (json: unknown, org = ours) => org.call('POST', PATH, { json });
const get = (name: string, org = ours) => org.call('GET', `${PATH}/${encodeURIComponent(name)}`);
const remove = (name: string, org = ours) => org.call('DELETE', `${PATH}/${encodeURIComponent(name)}`);

const put = (email: string, origin: SuppressionOrigin, fields: object = {}) =>
  putSuppression(service.pool, ours.id, email, origin, fields);

/** Events of an organization's suppressions, as an endpoint of its would be told of them. */
async function told(org: Organization, work: () => Promise<unknown>): Promise<{ type: string; data: object }[]> {
  const endpoint = newId('wh', Date.now());
  await service.pool.query(
    `INSERT INTO webhook_endpoints (id, org_id, url, events, secret) VALUES ($1, $2, 'https://example.com', '{}', '')`,
    [endpoint, org.id],
  );
  await work();
  const { rows } = await service.pool.query<{ type: string; data: object }>(
    `SELECT event.type, event.data FROM webhook_deliveries AS delivery JOIN webhook_events AS event ON event.id = event_id
     WHERE endpoint_id = $1 ORDER BY event.id`,
    [endpoint],
  );
  await service.pool.query('DELETE FROM webhook_endpoints WHERE id = $1', [endpoint]);
  return rows;
}

describe('POST /v1/suppressions', () => {
  it('9.4: email → 201 with the suppression; 200 with it when it was there', async () => {
    const email = address();
    const made = bodyOf(await add({ email }), 201);
    assert.deepEqual(Object.keys(made), ['id', 'email', 'origin', 'reason', 'email_id', 'created_at']);
    const { id, created_at, ...rest } = made;
    assert.match(id, /^sup_[0-9a-z]{26}$/);
    assert.match(String(created_at), TIMESTAMP);
    assert.deepEqual(rest, { email, origin: 'manual', reason: null, email_id: null });
    assert.deepEqual(bodyOf(await add({ email }), 200), made);
    assert.deepEqual(bodyOf(await add({ email: `Ada <${email.toUpperCase()}>`, emails: null }), 200), made);
  });

  it('9.4: up to 1,000 emails → each of them, in their order, no address twice', async () => {
    const emails = Array.from({ length: 1_000 }, address).reverse();
    const { suppressions } = pageOf(await add({ emails }), 201);
    assert.deepEqual(
      suppressions.map(({ email }) => email),
      emails,
    );
    const some = [emails[3], emails[3]?.toUpperCase(), address(), `"A, b" <${emails[0]}>`];
    const more = pageOf(await add({ emails: some }), 201).suppressions;
    assert.deepEqual(
      more.map(({ email }) => email),
      [emails[3], some[2], emails[0]],
    );
    assert.equal(more[0]?.id, suppressions[3]?.id);
    assert.equal((await add({ emails: some })).status, 200);
    assert.deepEqual(pageOf(await add({ email: null, emails: [emails[1]] }), 200).suppressions, [suppressions[1]]);
  });

  it('2.6: an address is one in any case, and its domain in any script', async () => {
    const email = bodyOf(await add({ email: ' Ada@BÜCHER.example ' }), 201).email;
    assert.equal(email, 'ada@xn--bcher-kva.example');
    assert.equal((await add({ email: 'ADA@xn--bcher-kva.EXAMPLE' })).status, 200);
  });

  it('what is there for another reason stays as it is', async () => {
    const email = address();
    await put(email, 'bounce', { reason: 'mailbox_not_found', message_id: 'em_1' });
    const { origin, reason, email_id } = bodyOf(await add({ email }), 200);
    assert.deepEqual([origin, reason, email_id], ['bounce', 'mailbox_not_found', 'em_1']);
  });

  it('who has only unsubscribed from marketing email gets nothing at all from now on', async () => {
    const email = address();
    await put(email, 'unsubscribe');
    assert.equal(bodyOf(await add({ email }), 201).origin, 'manual');
    const { suppressions } = pageOf(await ours.call('GET', `${PATH}?email=${email}`), 200);
    assert.deepEqual(suppressions.map(({ origin }) => origin).sort(), ['manual', 'unsubscribe']);
  });

  it('the same addresses in many requests at a time are added once', async () => {
    const emails = Array.from({ length: 50 }, address);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => add({ emails: i % 2 === 0 ? emails : [...emails].reverse() })),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    assert.equal(answers.filter(({ status }) => status === 200).length, 19);
    const ids = answers.flatMap(({ body }) => (body as Page).suppressions.map(({ id }) => id));
    assert.equal(new Set(ids).size, 50);
  });

  it('requests that add what others take away are answered all the same', async () => {
    const emails = Array.from({ length: 5 }, address);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => (i % 3 === 0 ? remove(emails[i % 5] as string) : add({ emails }))),
    );
    for (const { status, text } of answers) assert.ok([200, 201, 204, 404].includes(status), text);
  });

  it('7.6: suppression.added is told for what is new, and wakes the relay', async () => {
    const [first, second] = [address(), address()];
    await add({ email: first });
    const wakes = service.wakes();
    const events = await told(ours, () => add({ emails: [first, second] }));
    const { id } = bodyOf(await get(second), 200);
    assert.deepEqual(events, [
      { type: 'suppression.added', data: { suppressionId: id, email: second, origin: 'manual' } },
    ]);
    assert.equal(service.wakes(), wakes + 1);
  });

  for (const [what, json, param, says] of [
    ['neither', {}, 'email', 'is required unless emails is given'],
    ['both null', { email: null, emails: null }, 'email', 'is required unless emails is given'],
    ['both', { email: 'a@example.net', emails: ['b@example.net'] }, 'emails', 'cannot be given together with email'],
    ['no address', { email: 'nobody' }, 'email', 'must be local@domain'],
    ['an empty text', { email: '' }, 'email', 'must be'],
    ['a number', { email: 5 }, 'email', 'must be a string'],
    ['a list as email', { email: ['a@example.net'] }, 'email', 'must be a string'],
    ['a text as emails', { emails: 'a@example.net' }, 'emails', 'must be an array'],
    ['none', { emails: [] }, 'emails', 'must hold 1 to 1000 items'],
    ['1,001', { emails: Array(1_001).fill('a@example.net') }, 'emails', 'must hold 1 to 1000 items'],
    ['a bad one among good ones', { emails: ['a@example.net', 'b@'] }, 'emails.1', 'must have a domain name'],
    ['null among them', { emails: [null] }, 'emails.0', 'must be a string'],
    ['a line break', { email: 'a@example.net\n' }, 'email', 'must not hold control characters'],
    ['an unknown field', { email: 'a@example.net', reason: 'x' }, 'reason', 'is not a known field'],
  ] as const) {
    it(`422: ${what}`, async () => {
      assertRefused(await add(json), 422, 'validation_error', param, says);
      assert.equal((await get('a@example.net')).status, 404, 'nothing is added');
    });
  }

  it('400 for what is no JSON, 415 for another type', async () => {
    const headers = { 'content-type': 'application/json' };
    assertRefused(await ours.call('POST', PATH, { raw: '{', headers }), 400, 'invalid_json');
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    assertRefused(await ours.call('POST', PATH, { raw: 'email=a', headers: form }), 415, 'unsupported_media_type');
  });
});

describe('GET /v1/suppressions/:id-or-email', () => {
  it('9.4: by id, and by address in any case, percent-encoded or not', async () => {
    const email = `o'brien+${address()}`;
    const made = bodyOf(await add({ email }), 201);
    for (const name of [made.id, email, email.toUpperCase(), `O <${email}>`]) {
      assert.deepEqual(bodyOf(await get(name), 200), made);
    }
    assert.deepEqual(bodyOf(await ours.call('GET', `${PATH}/${email}`), 200), made);
  });

  it('of two of one address, the one for all mail', async () => {
    for (const origins of [['bounce', 'unsubscribe'] as const, ['unsubscribe', 'complaint'] as const]) {
      const email = address();
      for (const origin of origins) await put(email, origin);
      assert.notEqual(bodyOf(await get(email), 200).origin, 'unsubscribe');
    }
    const email = address();
    const id = await put(email, 'unsubscribe');
    await add({ email });
    assert.equal(bodyOf(await get(id), 200).origin, 'unsubscribe');
  });

  it('404 for what is not there', async () => {
    for (const name of [
      'sup_',
      `sup_${'0'.repeat(26)}`,
      'nobody@example.net',
      'x',
      '@',
      '%',
      'a\0b',
      'x'.repeat(5_000),
    ]) {
      assertRefused(await get(name), 404, 'not_found');
      assertRefused(await remove(name), 404, 'not_found');
    }
    assertRefused(await ours.call('GET', `${PATH}/%ZZ`), 404, 'not_found');
  });
});

describe('DELETE /v1/suppressions/:id-or-email', () => {
  it('9.4, 9.6: 204, and it is gone; 404 after that', async () => {
    const email = address();
    await add({ email });
    const answer = await remove(email.toUpperCase());
    assert.deepEqual([answer.status, answer.text], [204, '']);
    assertRefused(await get(email), 404, 'not_found');
    assertRefused(await remove(email), 404, 'not_found');
  });

  it('by id removes that one, by address all of it', async () => {
    const email = address();
    const [first, second] = [await put(email, 'unsubscribe'), await put(email, 'bounce')];
    assert.equal((await remove(first)).status, 204);
    assert.equal(bodyOf(await get(email), 200).id, second);
    await put(email, 'unsubscribe');
    assert.equal((await remove(email)).status, 204);
    assertRefused(await get(email), 404, 'not_found');
  });

  it('7.6: suppression.removed is told for each', async () => {
    const email = address();
    const ids = { unsubscribe: await put(email, 'unsubscribe'), bounce: await put(email, 'bounce') };
    const wakes = service.wakes();
    const events = await told(ours, () => remove(email));
    assert.deepEqual(
      events,
      (['unsubscribe', 'bounce'] as const).map((origin) => ({
        type: 'suppression.removed',
        data: { suppressionId: ids[origin], email, origin },
      })),
    );
    assert.equal(service.wakes(), wakes + 1);
    assert.deepEqual(await told(ours, () => remove(email)), []);
  });

  it('what is removed may come back', async () => {
    const email = address();
    const first = bodyOf(await add({ email }), 201);
    await remove(email);
    assert.notEqual(bodyOf(await add({ email }), 201).id, first.id);
  });

  it('many removals of one at a time: one is 204, the others are 404', async () => {
    const email = address();
    await add({ email });
    const answers = await Promise.all(Array.from({ length: 10 }, () => remove(email)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, ...Array<number>(9).fill(404)]);
  });

  it('a body of {} is taken, any other is not', async () => {
    const email = address();
    await add({ email });
    assertRefused(await ours.call('DELETE', `${PATH}/${email}`, { json: { x: 1 } }), 422, 'validation_error', 'x');
    assert.equal((await ours.call('DELETE', `${PATH}/${email}`, { json: {} })).status, 204);
  });
});

describe('whose list it is', () => {
  it("9.1: another organization's suppressions are as if they did not exist", async () => {
    const email = address();
    const { id } = bodyOf(await add({ email }), 201);
    for (const name of [id, email]) {
      const missing = await get(`sup_${'0'.repeat(26)}`, theirs);
      const foreign = await get(name, theirs);
      const without = ({ body }: Answer) => ({ ...(body as { error: object }).error, request_id: '' });
      assert.deepEqual(without(foreign), without(missing));
      assertRefused(foreign, 404, 'not_found');
      assertRefused(await remove(name, theirs), 404, 'not_found');
    }
    const { suppressions } = pageOf(await theirs.call('GET', `${PATH}?email=${email}`), 200);
    assert.deepEqual(suppressions, []);
    assert.equal((await add({ email }, theirs)).status, 201);
    assert.equal((await remove(email, theirs)).status, 204);
    assert.equal((await get(email)).status, 200);
  });

  it('9.2: reads need a key that reads, changes one that may do everything', async () => {
    const email = address();
    await add({ email });
    const [reading, sending] = [await ours.addKey('read_only'), await ours.addKey('sending_access')];
    const calls = [
      ['GET', PATH, true],
      ['GET', `${PATH}/${email}`, true],
      ['POST', PATH, false],
      ['DELETE', `${PATH}/${email}`, false],
    ] as const;
    for (const [method, path, reads] of calls) {
      const json = method === 'POST' ? { json: { email: address() } } : {};
      const answer = await service.call(method, path, { key: reading, ...json });
      if (reads) assert.equal(answer.status, 200);
      else assertRefused(answer, 403, 'insufficient_scope');
      assertRefused(await service.call(method, path, { key: sending, ...json }), 403, 'insufficient_scope');
      assertRefused(await service.call(method, path, json), 401, 'unauthorized');
    }
    assert.equal((await get(email)).status, 200);
  });

  it('405 with Allow', async () => {
    for (const [method, path, allow] of [
      ['DELETE', PATH, 'POST, GET'],
      ['PUT', `${PATH}/x`, 'GET, DELETE'],
    ] as const) {
      const answer = await ours.call(method, path);
      assertRefused(answer, 405, 'method_not_allowed');
      assert.equal(answer.headers['allow'], allow);
    }
  });
});
