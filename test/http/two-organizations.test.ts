import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { routeTable } from '../../src/http/app.ts';
import { type Answer, assertRefused, inFuture, type Organization, type Service, startService } from './service.ts';
import { connectNumber, type Ids, suppressAddress, RESOURCES, resourceOf } from './resources.ts';

/**
 * Every address of the API with another organization's ids: it answers as if there were no such thing. What is asked is
 * made from the route table, so that a new route cannot be forgotten: one that `RESOURCES` has nothing for fails here.
 */
let service: Service;
let ours: Organization;
let theirs: Organization;
/** The routes below /v1, as `GET /v1/emails/:id`. */
let routes: string[];
before(async () => {
  service = await startService();
  ours = await service.organization('Ours');
  theirs = await service.organization('Theirs');
  const table = routeTable(service.deps, () => '{}');
  routes = table.map(([method, path]) => `${String(method)} ${path}`).filter((route) => route.includes(' /v1/'));
});
after(() => service.close());

type Json = Record<string, unknown>;

/** Bodies with which a request gets as far as the thing it names. */
const BODIES: Readonly<Record<string, Json>> = {
  'PATCH /v1/emails/:id': { scheduled_at: inFuture({ days: 2 }) },
  'PATCH /v1/webhooks/:id': { description: 'changed' },
  'POST /v1/webhooks/:id/replay': { since: '2026-03-01T00:00:00Z' },
};

/** Nobody has it: the same prefix, and nothing but zeros. */
const absent = (id: string): string => id.replace(/_.*/, `_${'0'.repeat(26)}`);

function namesIn(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name as string);
}

/** Every way to choose at least one of the names. */
function choices(names: readonly string[]): string[][] {
  return names.reduce<string[][]>((all, name) => [...all, ...all.map((some) => [...some, name])], [[]]).slice(1);
}

/** A signed link's query, which opens the organization's own file. */
async function signature(organization: Organization, { id = '', attachmentId = '' }: Ids): Promise<string> {
  const answer = await organization.call('GET', `/v1/emails/${id}/attachments/${attachmentId}`);
  return new URL((answer.body as { download_url: string }).download_url).search;
}

/** @param query `?…`, where the address takes one */
function ask(organization: Organization, route: string, ids: Ids, query = ''): Promise<Answer> {
  const [method = '', path = ''] = route.split(' ');
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(ids[name] ?? ''));
  const json = BODIES[route];
  return organization.call(method, filled + query, json && { json });
}

/** An answer without what no two answers share. */
function withoutRequest({ status, headers, body }: Answer): unknown {
  const { error } = body as { error?: Json };
  const names = Object.keys(headers).filter((name) => !/^(?:date|x-request-id|ratelimit-.*)$/.test(name));
  return { status, names, error: { ...error, request_id: undefined } };
}

describe('an address with an id', () => {
  it('has something to be asked with, of each organization', () => {
    const withIds = routes.filter((route) => route.includes(':'));
    assert.ok(withIds.length >= 25, String(withIds.length));
    for (const route of withIds) assert.ok(resourceOf(route.split(' ')[1] ?? ''), `RESOURCES has nothing for ${route}`);
    for (const route of Object.keys(BODIES)) assert.ok(routes.includes(route), `${route} is no route`);
    for (const start of Object.keys(RESOURCES)) {
      assert.ok(
        routes.some((route) => route.includes(` ${start}`)),
        `no route begins with ${start}`,
      );
    }
  });

  it('answers to another organization as if it were not there, and does nothing', async (t) => {
    let cases = 0;
    for (const route of routes.filter((each) => each.includes(':'))) {
      const [, path = ''] = route.split(' ');
      const make = resourceOf(path);
      assert.ok(make, `RESOURCES has nothing for ${route}`);
      const [mine, foreign] = [await make(ours), await make(theirs)];
      const names = namesIn(path);
      for (const name of names) assert.ok(foreign[name] && mine[name], `RESOURCES has no ${name} for ${route}`);

      const isSigned = path.endsWith('/download');
      const query = isSigned ? await signature(ours, mine) : '';
      for (const chosen of choices(names)) {
        cases++;
        const which = chosen.length === names.length ? chosen : `${chosen.join()} and its own others`;
        await t.test(`${route}: its ${String(which)}`, async () => {
          const taking = (from: (name: string) => string) =>
            ask(ours, route, { ...mine, ...Object.fromEntries(chosen.map((name) => [name, from(name)])) }, query);
          const answer = await taking((name) => foreign[name] ?? '');
          assert.equal(answer.status, 404, answer.text);
          assertRefused(answer, 404, 'not_found');
          const nothing = await taking((name) => absent(foreign[name] ?? ''));
          assert.deepEqual(withoutRequest(answer), withoutRequest(nothing));
          for (const id of Object.values(foreign)) assert.ok(!answer.text.includes(id), answer.text);
        });
      }

      // What they were asked with is there and untouched: its owner gets what he asks for.
      await t.test(`${route}: its owner`, async () => {
        const answer = await ask(theirs, route, foreign, isSigned ? await signature(theirs, foreign) : '');
        assert.ok(answer.status >= 200 && answer.status < 300, answer.text);
      });
    }
    t.diagnostic(`${cases} cases of ${routes.filter((each) => each.includes(':')).length} routes with ids`);
    assert.ok(cases >= 30, String(cases));
  });

  it('knows a suppressed address of another organization by its address as little as by its id', async () => {
    const { email } = await suppressAddress(theirs);
    for (const route of ['GET /v1/suppressions/:idOrEmail', 'DELETE /v1/suppressions/:idOrEmail']) {
      const answer = await ask(ours, route, { idOrEmail: email });
      assertRefused(answer, 404, 'not_found');
      const nothing = await ask(ours, route, { idOrEmail: 'nobody@example.net' });
      assert.deepEqual(withoutRequest(answer), withoutRequest(nothing));
    }
    assert.equal((await ask(theirs, 'GET /v1/suppressions/:idOrEmail', { idOrEmail: email })).status, 200);
  });
});

describe('a list', () => {
  it('shows an organization what it has, and nothing of another one', async (t) => {
    const lists = routes.filter((route) => route.startsWith('GET ') && !route.includes(':'));
    assert.ok(lists.length >= 8, String(lists));
    const has: Record<string, { mine: Ids; foreign: Ids }> = {};
    for (const [start, make] of Object.entries(RESOURCES))
      has[start] = { mine: await make(ours), foreign: await make(theirs) };
    const foreign = Object.values(has).flatMap((thing) => Object.values(thing.foreign));
    for (const route of lists) {
      await t.test(route, async () => {
        const path = route.slice('GET '.length);
        const [own, other] = [await ours.call('GET', path), await theirs.call('GET', path)];
        assert.deepEqual([own.status, other.status], [200, 200], own.text + other.text);
        for (const id of [...foreign, theirs.id, theirs.domain])
          assert.ok(!own.text.includes(id), `${id} in ${own.text}`);
        // Tags have no ids; the emails made here carry their organization's.
        const id = path === '/v1/emails/tags' ? ours.id : idOf(has, path);
        assert.ok(own.text.includes(id), `${id} is not in ${own.text}`);
        assert.ok(!other.text.includes(id), `${id} in ${other.text}`);
      });
    }
    t.diagnostic(`${lists.length} lists`);
  });

  it('filtered by another organization’s batch is as empty as by one that does not exist', async () => {
    const { id = '' } = (await RESOURCES['/v1/emails/batch/:id']?.(theirs)) ?? {};
    const filtered = await ours.call('GET', `/v1/emails?batch_id=${id}`);
    const nothing = await ours.call('GET', `/v1/emails?batch_id=${absent(id)}`);
    assert.equal(filtered.status, 200, filtered.text);
    assert.deepEqual(filtered.body, nothing.body);
    assert.deepEqual((filtered.body as { emails: unknown }).emails, []);
  });

  it('does not go on where another organization’s page ended', async (t) => {
    for (const route of routes.filter((each) => each.startsWith('GET ') && !each.includes(':'))) {
      const path = route.slice('GET '.length);
      if (path === '/v1/emails/tags') continue;
      await t.test(route, async () => {
        const start = Object.keys(RESOURCES).find((each) => each.startsWith(`${path}/:`)) ?? '';
        await RESOURCES[start]?.(theirs);
        await RESOURCES[start]?.(theirs);
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
  it('of another organization’s domain makes no key for it, and is told as one that does not exist', async () => {
    const { id = '' } = (await RESOURCES['/v1/domains/:id']?.(theirs)) ?? {};
    const issue = (domain: string) =>
      ours.call('POST', '/v1/keys', { json: { preset: 'sending_access', domain_ids: [domain] } });
    const [answer, nothing] = [await issue(id), await issue(absent(id))];
    assert.ok(answer.status >= 400 && answer.status < 500, answer.text);
    const told = (given: Answer, domain: string) => JSON.stringify(withoutRequest(given)).replaceAll(domain, 'dm_…');
    assert.equal(told(answer, id), told(nothing, absent(id)));
  });

  it('sends nothing from another organization’s domain or number', async () => {
    const { number } = await connectNumber(theirs);
    await connectNumber(ours);
    assertRefused(await ours.send({ from: `x@${theirs.domain}` }), 403, 'domain_not_found', 'from');
    const chat = await ours.call('POST', '/v1/chatapp', { json: { from: number, to: '+14165550123', text: 'Hi.' } });
    assertRefused(chat, 422, 'no_chatapp_account', 'from');
  });
});

/** The id of what this list is of, which `ours` has. */
function idOf(has: Readonly<Record<string, { mine: Ids }>>, path: string): string {
  const start = Object.keys(has).find((each) => each.startsWith(`${path}/:`));
  const id = start === undefined ? undefined : (has[start]?.mine['id'] ?? has[start]?.mine['idOrEmail']);
  assert.ok(id, `RESOURCES has nothing for the list ${path}`);
  return id;
}
