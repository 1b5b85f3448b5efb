import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { SUPPRESSION_ORIGINS } from '../../src/domain/email/suppression.ts';
import { assertRefused, type Organization, type Service, startService } from './service.ts';
import { address, type Page, pageOf, putSuppression } from './suppressed.ts';

let service: Service;
let ours: Organization;
before(async () => {
  service = await startService();
  ours = await service.organization();
});
after(() => service.close());

const PATH = '/v1/suppressions';
const add = (org: Organization, json: unknown) => org.call('POST', PATH, { json });

describe('GET /v1/suppressions', () => {
  const list = async (query: string, org: Organization) => pageOf(await org.call('GET', PATH + query), 200);

  it('newest first, with limit and cursor', async () => {
    const org = await service.organization();
    const emails = Array.from({ length: 7 }, address);
    for (const email of emails) await add(org, { email });
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Page = await list(`?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`, org);
      assert.equal(page.has_more, page.next_cursor !== null);
      seen.push(...page.suppressions.map(({ email }) => email));
      cursor = page.next_cursor;
    } while (cursor !== null);
    assert.deepEqual(seen, [...emails].reverse());
    assert.deepEqual(await list('', await service.organization()), {
      suppressions: [],
      has_more: false,
      next_cursor: null,
    });
  });

  it('those of one request, which are of one instant, neither repeat nor hide while others come and go', async () => {
    const org = await service.organization();
    const emails = Array.from({ length: 60 }, address);
    await add(org, { emails });
    const first = await list('?limit=50', org);
    await add(org, { email: address() });
    await org.call('DELETE', `${PATH}/${first.suppressions[49]?.email}`);
    const second = await list(`?limit=50&cursor=${first.next_cursor}`, org);
    const seen = [...first.suppressions, ...second.suppressions].map(({ email }) => email);
    assert.deepEqual([...seen].sort(), [...emails].sort());
  });

  it('?origin= and ?email=, alone and together', async () => {
    const org = await service.organization();
    const both = address();
    for (const origin of SUPPRESSION_ORIGINS) await putSuppression(service.pool, org.id, address(), origin);
    await putSuppression(service.pool, org.id, both, 'bounce');
    await putSuppression(service.pool, org.id, both, 'unsubscribe');
    for (const origin of SUPPRESSION_ORIGINS) {
      const { suppressions } = await list(`?origin=${origin}`, org);
      assert.deepEqual(new Set(suppressions.map((each) => each.origin)), new Set([origin]));
      assert.equal(suppressions.length, origin === 'bounce' || origin === 'unsubscribe' ? 2 : 1);
    }
    const ofBoth = await list(`?email=${both.toUpperCase()}`, org);
    assert.deepEqual(
      ofBoth.suppressions.map(({ origin }) => origin),
      ['unsubscribe', 'bounce'],
    );
    const one = await list(`?email=${encodeURIComponent(`B <${both}>`)}&origin=bounce`, org);
    assert.deepEqual(
      one.suppressions.map(({ email, origin }) => [email, origin]),
      [[both, 'bounce']],
    );
    assert.deepEqual((await list(`?email=${both}&origin=manual`, org)).suppressions, []);
  });

  it('a cursor goes with its filters, however they are written, and with its organization', async () => {
    const org = await service.organization();
    const email = address();
    await putSuppression(service.pool, org.id, email, 'bounce');
    await putSuppression(service.pool, org.id, email, 'unsubscribe');
    const { next_cursor: cursor } = await list(`?limit=1&email=${email}`, org);
    assert.ok(cursor);
    const next = await list(`?limit=1&email=${email.toUpperCase()}&cursor=${cursor}`, org);
    assert.equal(next.suppressions.length, 1);
    for (const query of ['', `&email=${address()}`, `&email=${email}&origin=bounce`]) {
      const answer = await org.call('GET', `${PATH}?cursor=${cursor}${query}`);
      assertRefused(answer, 422, 'validation_error', 'cursor');
    }
    const foreign = await ours.call('GET', `${PATH}?email=${email}&cursor=${cursor}`);
    assertRefused(foreign, 422, 'validation_error', 'cursor');
  });

  for (const [query, param, says] of [
    ['?origin=spam', 'origin', 'must be one of bounce, complaint, unsubscribe, manual, provider'],
    ['?email=nobody', 'email', 'must be'],
    ['?email=', 'email', 'must be'],
    ['?email=a@example.net&email=b@example.net', 'email', 'must be a string'],
    ['?limit=0', 'limit', 'must be 1 to 100'],
    ['?limit=101', 'limit', 'must be 1 to 100'],
    ['?cursor=x', 'cursor', 'must be the next_cursor'],
    ['?reason=x', 'reason', 'is not a known parameter'],
  ] as const) {
    it(`422: ${query}`, async () => {
      assertRefused(await ours.call('GET', PATH + query), 422, 'validation_error', param, says);
    });
  }
});
