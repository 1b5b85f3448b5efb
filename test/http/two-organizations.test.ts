import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ROUTES } from '../../src/http/app.ts';
import { connectNumber, type Ids, resourceOf, RESOURCES, suppressAddress } from './resources.ts';
import { type Answer, assertRefused, inFuture, type Organization, useService } from './service.ts';

/**
 * Calls every route with ids of another organization: the answer is that for an id that does not exist. The calls are
 * derived from the route table, so that a new route fails here until `RESOURCES` has a resource for it.
 */
const service = await useService({ logsRequests: true });
const [ours, theirs] = [await service.organization('Ours'), await service.organization('Theirs')];
/** The routes below /v1, as `GET /v1/emails/:id`. */
const routes = ROUTES.map(([method, path]) => `${String(method)} ${path}`).filter((route) => route.includes(' /v1/'));
const withIds = routes.filter((route) => route.includes(':'));
/** Statistics name no ids unless they are asked to: `test/http/statistics.test.ts`. */
const lists = routes
  .filter((route) => route.startsWith('GET ') && !route.includes(':') && route !== 'GET /v1/stats')
  .map((route) => route.slice(4));

type Json = Record<string, unknown>;

/** Valid bodies of the routes that require one. */
const BODIES: Readonly<Record<string, Json>> = {
  'PATCH /v1/emails/:id': { scheduled_at: inFuture({ days: 2 }) },
  'PATCH /v1/chatapp/:id': { scheduled_at: inFuture({ days: 2 }) },
  'PATCH /v1/sms/:id': { scheduled_at: inFuture({ days: 2 }) },
  'PATCH /v1/domains/:id': { open_tracking: false },
  'PATCH /v1/webhooks/:id': { description: 'changed' },
  'POST /v1/webhooks/:id/replay': { since: '2026-03-01T00:00:00Z' },
};

/** An id of the same kind that does not exist. */
const absent = (id: string): string => id.replace(/_.*/, `_${'0'.repeat(26)}`);

async function create(organization: Organization, path: string): Promise<Ids> {
  const make = resourceOf(path);
  assert.ok(make, `RESOURCES has nothing for ${path}`);
  const ids = await make(organization);
  for (const [, name = ''] of path.matchAll(/:(\w+)/g)) assert.ok(ids[name], `RESOURCES has no ${name} for ${path}`);
  return ids;
}

/** Every non-empty subset of the names. */
function subsets(names: readonly string[]): string[][] {
  return names.reduce<string[][]>((all, name) => [...all, ...all.map((some) => [...some, name])], [[]]).slice(1);
}

/** The query of a download link, if the route takes one. */
async function signatureOf(organization: Organization, route: string, ids: Ids): Promise<string> {
  if (!route.endsWith('/download')) return '';
  const { id = '', attachmentId = '', signature } = ids;
  if (signature !== undefined) return signature;
  const answer = await organization.call('GET', `/v1/emails/${id}/attachments/${attachmentId}`);
  return new URL((answer.body as { download_url: string }).download_url).search;
}

function ask(organization: Organization, route: string, ids: Ids, query = ''): Promise<Answer> {
  const [method = '', path = ''] = route.split(' ');
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(ids[name] ?? ''));
  const json = BODIES[route];
  return organization.call(method, filled + query, json && { json });
}

/** An answer without what differs between any two answers. */
function comparable({ status, headers, body }: Answer): unknown {
  const { error } = body as { error?: Json };
  const names = Object.keys(headers).filter((name) => !/^(?:date|x-request-id|ratelimit-.*)$/.test(name));
  return { status, names, error: { ...error, request_id: undefined } };
}

describe('an address with an id', () => {
  it('answers to another organization as if it were not there, and does nothing', async (t) => {
    assert.ok(withIds.length >= 25, `${withIds.length} routes`);
    for (const route of withIds) {
      const path = route.slice(route.indexOf('/'));
      const [mine, foreign] = [await create(ours, path), await create(theirs, path)];
      const query = await signatureOf(ours, route, mine);
      const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
      for (const chosen of subsets(names)) {
        await t.test(`${route} with the other organization's ${chosen.join()}`, async () => {
          const askFor = (id: (name: string) => string) =>
            ask(ours, route, { ...mine, ...Object.fromEntries(chosen.map((name) => [name, id(name)])) }, query);
          const answer = await askFor((name) => foreign[name] ?? '');
          assertRefused(answer, 404, 'not_found');
          assert.deepEqual(comparable(answer), comparable(await askFor((name) => absent(foreign[name] ?? ''))));
          for (const id of Object.values(foreign)) assert.ok(!answer.text.includes(id), answer.text);
        });
      }
      const unchanged = await ask(theirs, route, foreign, await signatureOf(theirs, route, foreign));
      assert.ok(unchanged.status >= 200 && unchanged.status < 300, `${route} by its owner: ${unchanged.text}`);
    }
  });

  it('does not find a suppression of another organization by its address', async () => {
    const { email } = await suppressAddress(theirs);
    for (const route of ['GET /v1/suppressions/:idOrEmail', 'DELETE /v1/suppressions/:idOrEmail']) {
      const answer = await ask(ours, route, { idOrEmail: email });
      assertRefused(answer, 404, 'not_found');
      assert.deepEqual(comparable(answer), comparable(await ask(ours, route, { idOrEmail: 'absent@example.net' })));
    }
    assert.equal((await ask(theirs, 'GET /v1/suppressions/:idOrEmail', { idOrEmail: email })).status, 200);
  });
});

describe('a list', () => {
  it('shows an organization what it has, and nothing of another one', async (t) => {
    assert.ok(lists.length >= 8, String(lists));
    const [mine, foreign] = [new Map<string, Ids>(), new Map<string, Ids>()];
    for (const path of Object.keys(RESOURCES)) {
      mine.set(path, await create(ours, path));
      foreign.set(path, await create(theirs, path));
    }
    const foreignIds = [...foreign.values()].flatMap((ids) => Object.values(ids));
    for (const path of lists) {
      await t.test(path, async () => {
        // The log of requests has more than a page of the usual size by now.
        const page = path === '/v1/requests' ? `${path}?limit=100` : path;
        const [own, other] = [await ours.call('GET', page), await theirs.call('GET', page)];
        assert.deepEqual([own.status, other.status], [200, 200], own.text + other.text);
        for (const id of [...foreignIds, theirs.id, theirs.domain])
          assert.ok(!own.text.includes(id), `${id} in ${own.text}`);
        const listed = [...mine].find(([start]) => start.startsWith(`${path}/:`))?.[1];
        // Tags have no ids: those of the emails here contain the id of their organization.
        const id = path === '/v1/emails/tags' ? ours.id : (listed?.['id'] ?? listed?.['idOrEmail']);
        assert.ok(id, `RESOURCES has nothing for the list ${path}`);
        assert.ok(own.text.includes(id), `${id} is not in ${own.text}`);
        assert.ok(!other.text.includes(id), `${id} in ${other.text}`);
      });
    }
  });

  it("is empty when it is filtered by another organization's batch", async () => {
    const { id = '' } = await create(theirs, '/v1/emails/batch/:id');
    const filtered = await ours.call('GET', `/v1/emails?batch_id=${id}`);
    const nothing = await ours.call('GET', `/v1/emails?batch_id=${absent(id)}`);
    assert.deepEqual(filtered.body, nothing.body);
    assert.deepEqual((filtered.body as { emails: unknown }).emails, []);
  });

  it("refuses the cursor of another organization's page", async (t) => {
    for (const path of lists.filter((each) => each !== '/v1/emails/tags')) {
      await t.test(path, async () => {
        const start = Object.keys(RESOURCES).find((each) => each.startsWith(`${path}/:`)) ?? '';
        for (let i = 0; i < 2; i++) await create(theirs, start);
        const page = await theirs.call('GET', `${path}?limit=1`);
        const { next_cursor: cursor } = page.body as { next_cursor: string | null };
        assert.ok(cursor, page.text);
        const answer = await ours.call('GET', `${path}?limit=1&cursor=${encodeURIComponent(cursor)}`);
        assertRefused(answer, 422, 'validation_error', 'cursor');
      });
    }
  });
});

describe('an id in a body', () => {
  it("returns the same error for another organization's domain as for one that does not exist", async () => {
    const { id = '' } = await create(theirs, '/v1/domains/:id');
    const issue = async (domain: string) => {
      const json = { preset: 'sending_access', domain_ids: [domain] };
      const answer = await ours.call('POST', '/v1/keys', { json });
      assert.ok(answer.status >= 400 && answer.status < 500, answer.text);
      return JSON.stringify(comparable(answer)).replaceAll(domain, 'dm_…');
    };
    assert.equal(await issue(id), await issue(absent(id)));
  });

  it('sends nothing from another organization’s domain or number', async () => {
    const { number } = await connectNumber(theirs);
    await connectNumber(ours);
    assertRefused(await ours.send({ from: `x@${theirs.domain}` }), 403, 'domain_not_found', 'from');
    const chat = await ours.call('POST', '/v1/chatapp', { json: { from: number, to: '+14165550123', text: 'Hi.' } });
    assertRefused(chat, 422, 'no_chatapp_account', 'from');
  });
});
