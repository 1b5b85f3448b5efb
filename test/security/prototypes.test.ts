import assert from 'node:assert/strict';
import { it } from 'node:test';
import { allPages, assertRefused, useService } from '../http/service.ts';
import { type Described, operationsOf } from '../http/described.ts';
import { fillPath, resourceOf } from '../http/resources.ts';

/** A key that would reach an object's prototype, in each object of every body of /openapi.json and in every query. */
const service = await useService({ perSecond: { requests: 0, mails: 0 } });
const ours = await service.organization();
await ours.addDomain('example.com');

/** Bytes of a body that is parsed while it arrives. */
const LONG = 140_000;
const KEYS = [
  '"__proto__":{"polluted":true}',
  '"__proto__":null',
  '"\\u005f\\u005fproto__":{"polluted":true}',
  '"constructor":{"prototype":{"polluted":true}}',
];

/** The JSON with a key put first into each of its objects, one at a time. */
function insertIntoEachObject(json: string, key: string): string[] {
  return [...json.matchAll(/\{/g)].map(({ index }) => {
    const rest = json.slice(index + 1);
    return `${json.slice(0, index + 1)}${key}${rest.startsWith('}') ? '' : ','}${rest}`;
  });
}

it('is refused, and changes no object', async () => {
  const api = (await service.call('GET', '/openapi.json')).body as Described;
  const members = Object.getOwnPropertyNames(Object.prototype);
  const headers = { 'content-type': 'application/json' };
  let bodies = 0;
  for (const { path, method, example } of operationsOf(api)) {
    const filled = fillPath(path, (await resourceOf(path)?.(ours)) ?? {});
    const verb = method.toUpperCase();
    for (const query of ['__proto__=1', '__proto__[polluted]=1', 'constructor[prototype][polluted]=1']) {
      const answer = await ours.call(verb, `${filled}?${query}`, example === undefined ? {} : { json: example });
      assert.equal(answer.status, 422, `${verb} ${filled}?${query}: ${answer.text}`);
    }
    if (example === undefined) continue;
    // No text of an example contains a brace.
    const json = JSON.stringify(example);
    for (const raw of KEYS.flatMap((key) => insertIntoEachObject(json, key))) {
      bodies++;
      // Our own parser reads long bodies.
      for (const length of [0, LONG]) {
        const answer = await ours.call(verb, filled, { raw: raw.padEnd(length), headers });
        assertRefused(answer, 422, 'validation_error', undefined, /^the request body must not contain a key __proto__/);
      }
    }
  }
  assert.ok(bodies > 50, `${bodies} bodies`);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  assert.deepEqual(Object.getOwnPropertyNames(Object.prototype), members);
  const { rows } = await service.pool.query(`SELECT FROM emails WHERE "from" LIKE '%@example.com%'`);
  assert.equal(rows.length, 0, 'nothing was accepted');
});

it('is a name like any other where names are the caller’s', async () => {
  const names = { constructor: 'a', prototype: 'b', hasOwnProperty: 'c', toString: 'd', valueOf: 'e' };
  const named = Object.keys(names).map((name) => ({ name, value: 'x' }));
  const id = await ours.sent({ subject: '"__proto__": {}', headers: names, tags: named });
  assert.deepEqual((await ours.email(id))['headers'], names);
  for (const name of Object.keys(names)) {
    assert.equal((await allPages(ours, `/v1/emails?tag=${name}:x`, 50))[0]?.['id'], id, name);
  }
  const tags = [{ name: '__proto__', value: 'x', toString: 'y' }];
  assertRefused(await ours.send({ tags }), 422, 'validation_error', 'tags.0.toString');
});
