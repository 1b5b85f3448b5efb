import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SUPPRESSION_ORIGINS, type SuppressionOrigin } from '../../src/domain/email/suppression.ts';
import { type Answer, assertRefused, bodyOf, type Organization, TIMESTAMP, useService } from './service.ts';
import { address, eventsDuring, type Page, putSuppression, type Suppression } from './suppression-list.ts';

const service = await useService();
const ours = await service.organization();

const PATH = '/v1/suppressions';
const add = (json: unknown, org = ours) => org.call('POST', PATH, { json });
const get = (name: string, org = ours) => org.call('GET', `${PATH}/${encodeURIComponent(name)}`);
const remove = (name: string, org = ours) => org.call('DELETE', `${PATH}/${encodeURIComponent(name)}`);
const entryOf = (answer: Answer, status: number) => bodyOf<Suppression>(answer, status);
const pageOf = (answer: Answer, status: number) => bodyOf<Page>(answer, status);
const list = async (query: string, org: Organization) => pageOf(await org.call('GET', PATH + query), 200);
const put = (email: string, origin: SuppressionOrigin, fields: object = {}, org = ours) =>
  putSuppression(service.pool, org.id, email, origin, fields);
const emailsOf = ({ suppressions }: Page) => suppressions.map(({ email }) => email);
const originsOf = ({ suppressions }: Page) => suppressions.map(({ origin }) => origin);

describe('POST /v1/suppressions', () => {
  it('returns 201 with a new suppression, and 200 with the existing one for the same address', async () => {
    const email = address();
    const created = entryOf(await add({ email }), 201);
    assert.deepEqual(Object.keys(created), ['id', 'email', 'origin', 'reason', 'email_id', 'created_at']);
    const { id, created_at, ...rest } = created;
    assert.match(id, /^sup_[0-9a-z]{26}$/);
    assert.match(String(created_at), TIMESTAMP);
    assert.deepEqual(rest, { email, origin: 'manual', reason: null, email_id: null });
    assert.deepEqual(entryOf(await add({ email: `Ada <${email.toUpperCase()}>`, emails: null }), 200), created);
    assert.equal(entryOf(await add({ email: 'ada@BÜCHER.example' }), 201).email, 'ada@xn--bcher-kva.example');
    const theirs = await service.organization();
    assert.equal((await add({ email }, theirs)).status, 201, 'each organization has its own list');
    assert.equal((await remove(email, theirs)).status, 204);
    assert.equal((await get(email)).status, 200);
  });

  it('takes up to 1,000 addresses and returns each once, in their order', async () => {
    const emails = Array.from({ length: 1_000 }, address).reverse();
    const all = pageOf(await add({ emails }), 201);
    assert.deepEqual(emailsOf(all), emails);
    const some = [emails[3], emails[3]?.toUpperCase(), address(), `"A, b" <${emails[0]}>`];
    const more = pageOf(await add({ emails: some }), 201);
    assert.deepEqual(emailsOf(more), [emails[3], some[2], emails[0]]);
    assert.equal(more.suppressions[0]?.id, all.suppressions[3]?.id);
    assert.deepEqual(pageOf(await add({ email: null, emails: [emails[1]] }), 200).suppressions, [all.suppressions[1]]);
  });

  it('does not change a suppression for all email, and adds one to a suppression for marketing email', async () => {
    const [bounced, unsubscribed] = [address(), address()];
    await put(bounced, 'bounce', { reason: 'mailbox_not_found', message_id: 'em_1' });
    const { origin, reason, email_id } = entryOf(await add({ email: bounced }), 200);
    assert.deepEqual([origin, reason, email_id], ['bounce', 'mailbox_not_found', 'em_1']);
    await put(unsubscribed, 'unsubscribe');
    assert.equal(entryOf(await add({ email: unsubscribed }), 201).origin, 'manual');
    assert.deepEqual(originsOf(await list(`?email=${unsubscribed}`, ours)).sort(), ['manual', 'unsubscribe']);
  });

  it('adds the same addresses of concurrent requests once', async () => {
    const emails = Array.from({ length: 50 }, address);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => add({ emails: i % 2 === 0 ? emails : [...emails].reverse() })),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    assert.equal(answers.filter(({ status }) => status === 200).length, 19);
    const ids = answers.flatMap(({ body }) => (body as Page).suppressions.map(({ id }) => id));
    assert.equal(new Set(ids).size, 50);
  });

  it('succeeds while concurrent requests remove the same addresses', async () => {
    const emails = Array.from({ length: 5 }, address);
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => (i % 3 === 0 ? remove(emails[i % 5] as string) : add({ emails }))),
    );
    for (const { status, text } of answers) assert.ok([200, 201, 204, 404].includes(status), text);
  });

  it('publishes suppression.added for each new address and wakes the relay', async () => {
    const [first, second] = [address(), address()];
    await add({ email: first });
    const wakes = service.wakes();
    const events = await eventsDuring(service.pool, ours.id, () => add({ emails: [first, second] }));
    const { id } = entryOf(await get(second), 200);
    const data = { suppressionId: id, email: second, origin: 'manual' };
    assert.deepEqual(events, [{ type: 'suppression.added', message_id: null, data }]);
    assert.equal(service.wakes(), wakes + 1);
  });

  for (const [what, json, param, message] of [
    ['neither field', {}, 'email', 'is required unless emails is given'],
    ['both fields', { email: 'a@example.net', emails: ['b@example.net'] }, 'emails', 'cannot be given together'],
    ['an empty list', { emails: [] }, 'emails', 'must have 1 to 1000 items'],
    ['one invalid address', { emails: ['a@example.net', 'b@'] }, 'emails.1', 'must have a domain name'],
    ['1,001 addresses', { emails: Array(1_001).fill('a@example.net') }, 'emails', 'must have 1 to 1000 items'],
  ] as const) {
    it(`returns 422 for ${what} and adds nothing`, async () => {
      assertRefused(await add(json), 422, 'validation_error', param, message);
      assert.equal((await get('a@example.net')).status, 404);
    });
  }
});

describe('GET /v1/suppressions/:id-or-email', () => {
  it('finds a suppression by id and by address in any case, percent-encoded or not', async () => {
    const email = `o'brien+${address()}`;
    const created = entryOf(await add({ email }), 201);
    for (const name of [created.id, email, email.toUpperCase(), `O <${email}>`]) {
      assert.deepEqual(entryOf(await get(name), 200), created);
    }
    assert.deepEqual(entryOf(await ours.call('GET', `${PATH}/${email}`), 200), created);
  });

  it('returns the suppression for all email if an address has two', async () => {
    const email = address();
    for (const origin of ['unsubscribe', 'bounce'] as const) await put(email, origin);
    assert.equal(entryOf(await get(email), 200).origin, 'bounce');
  });

  it('returns 404 for an id or address that is not on the list', async () => {
    for (const name of [`sup_${'0'.repeat(26)}`, 'unknown@example.net', '@', '%', 'a\0b', 'x'.repeat(5_000)]) {
      assertRefused(await get(name), 404, 'not_found');
      assertRefused(await remove(name), 404, 'not_found');
    }
    assertRefused(await ours.call('GET', `${PATH}/%ZZ`), 404, 'not_found');
  });
});

describe('DELETE /v1/suppressions/:id-or-email', () => {
  it('removes one suppression by its id, all of an address by the address, and publishes each', async () => {
    const email = address();
    const [first, second] = [await put(email, 'unsubscribe'), await put(email, 'bounce')];
    assert.equal((await remove(first)).status, 204);
    assert.equal(entryOf(await get(email), 200).id, second);
    const ids = { unsubscribe: await put(email, 'unsubscribe'), bounce: second };
    const wakes = service.wakes();
    const events = await eventsDuring(service.pool, ours.id, async () => {
      const answer = await remove(email.toUpperCase());
      assert.deepEqual([answer.status, answer.text], [204, '']);
      assertRefused(await remove(email), 404, 'not_found');
    });
    const data = (['bounce', 'unsubscribe'] as const).map((origin) => ({ suppressionId: ids[origin], email, origin }));
    assert.deepEqual(
      events.map((event) => event.data),
      data.sort((a, b) => (a.suppressionId < b.suppressionId ? -1 : 1)),
    );
    for (const { type } of events) assert.equal(type, 'suppression.removed');
    assert.equal(service.wakes(), wakes + 1);
    assertRefused(await get(email), 404, 'not_found');
    assert.notEqual(entryOf(await add({ email }), 201).id, second, 'a removed address can be added again');
  });

  it('returns 204 to one of several concurrent requests and 404 to the others', async () => {
    const email = address();
    await add({ email });
    const answers = await Promise.all(Array.from({ length: 10 }, () => remove(email)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [204, ...Array<number>(9).fill(404)]);
  });
});

describe('GET /v1/suppressions', () => {
  it('lists the latest first, and its pages neither repeat nor omit entries while others are added and removed', async () => {
    const org = await service.organization();
    const emails = Array.from({ length: 60 }, address);
    await add({ emails }, org);
    const [latest, later] = [address(), address()];
    await add({ email: latest }, org);
    const first = await list('?limit=50', org);
    assert.deepEqual([first.suppressions[0]?.email, first.has_more], [latest, true]);
    await add({ email: later }, org);
    await remove(first.suppressions[49]?.email ?? '', org);
    const second = await list(`?limit=50&cursor=${first.next_cursor}`, org);
    assert.deepEqual([second.has_more, second.next_cursor], [false, null]);
    assert.deepEqual([...emailsOf(first), ...emailsOf(second)].sort(), [...emails, latest].sort());
  });

  it('filters by origin and by address, alone and together', async () => {
    const org = await service.organization();
    const both = address();
    for (const origin of SUPPRESSION_ORIGINS) await put(address(), origin, {}, org);
    await put(both, 'bounce', {}, org);
    await put(both, 'unsubscribe', {}, org);
    for (const origin of SUPPRESSION_ORIGINS) {
      const origins = originsOf(await list(`?origin=${origin}`, org));
      assert.deepEqual(origins, Array(origin === 'bounce' || origin === 'unsubscribe' ? 2 : 1).fill(origin));
    }
    assert.deepEqual(originsOf(await list(`?email=${both.toUpperCase()}`, org)), ['unsubscribe', 'bounce']);
    const one = await list(`?email=${encodeURIComponent(`B <${both}>`)}&origin=bounce`, org);
    assert.deepEqual([emailsOf(one), originsOf(one)], [[both], ['bounce']]);
    assert.deepEqual(emailsOf(await list(`?email=${both}&origin=manual`, org)), []);
  });

  it('accepts a cursor only with the same filters, however they are written', async () => {
    const org = await service.organization();
    const email = address();
    await put(email, 'bounce', {}, org);
    await put(email, 'unsubscribe', {}, org);
    const { next_cursor: cursor } = await list(`?limit=1&email=${email}`, org);
    assert.ok(cursor);
    const next = await list(`?limit=1&email=${email.toUpperCase()}&cursor=${cursor}`, org);
    assert.equal(next.suppressions.length, 1);
    for (const query of ['', `&email=${address()}`, `&email=${email}&origin=bounce`]) {
      const answer = await org.call('GET', `${PATH}?cursor=${cursor}${query}`);
      assertRefused(answer, 422, 'validation_error', 'cursor');
    }
  });

  for (const [query, param, message] of [
    ['?origin=spam', 'origin', 'must be one of bounce, complaint, unsubscribe, manual, provider'],
    ['?limit=101', 'limit', 'must be 1 to 100'],
  ] as const) {
    it(`returns 422 for ${query}`, async () => {
      assertRefused(await ours.call('GET', PATH + query), 422, 'validation_error', param, message);
    });
  }
});
