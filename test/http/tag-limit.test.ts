import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeTagRegistry } from '../../src/intake/tag-registry.ts';
import { setQuota } from '../../src/store/limits/quota.ts';
import { connectNumber } from './resources.ts';
import { assertRefused, type Organization, useService } from './service.ts';

const LIMIT = 4;

const service = await useService({ organizationLimits: { tagPairs: LIMIT } });

const tags = (...values: (string | number)[]) => ({ tags: values.map((value) => ({ name: `n${value}`, value: 'v' })) });
const listed = async (ours: Organization) => {
  const { body } = await ours.call('GET', '/v1/emails/tags');
  return (body as { tags: { name: string; count: number }[] }).tags.map(({ name, count }) => [name, count]);
};
const stored = async ({ id }: Organization) => {
  const { rowCount } = await service.pool.query('SELECT FROM emails WHERE org_id = $1', [id]);
  return rowCount;
};

describe('distinct tags beyond the limit of an organization', () => {
  it('get 409, while known tags and emails without tags are accepted', async () => {
    const ours = await service.organization();
    await ours.sent(tags(1, 2, 3));
    const message = 'an organization may have 4 distinct tags; this request would add 2 new ones';
    assertRefused(await ours.send(tags(3, 4, 5)), 409, 'limit_exceeded', undefined, message);
    await ours.sent(tags(3, 4));
    assertRefused(await ours.send(tags(5)), 409, 'limit_exceeded');
    // The same name with another value is another tag.
    assertRefused(await ours.send({ tags: [{ name: 'n1', value: 'w' }] }), 409, 'limit_exceeded');
    await ours.sent(tags(1, 2, 3, 4));
    await ours.sent();
    assert.equal(await stored(ours), 4);
    assert.deepEqual((await listed(ours)).join(' '), 'n1,2 n2,2 n3,3 n4,2');
    await (await service.organization()).sent(tags(5, 6));
  });

  it('get 409 after the limit was lowered, with the number of new ones, while known ones are accepted', async () => {
    const ours = await service.organization();
    await ours.sent(tags(1, 2, 3, 4));
    const lowered = makeTagRegistry(service.pool, 2);
    const register = async (...values: number[]) => {
      const found = new Map<string, { name: string; value: string }>();
      lowered.collectUnknown(ours.id, tags(...values).tags, found);
      await lowered.register(ours.id, found);
    };
    await register(1, 2, 3);
    await assert.rejects(register(4, 5), /this request would add 1 new ones$/);
  });

  it('are not used up by emails that the quota refuses', async () => {
    const ours = await service.organization();
    await setQuota(service.pool, ours.id, 0);
    assertRefused(await ours.send(tags(1, 2, 3, 4)), 429, 'quota_exceeded');
    const batch = await ours.call('POST', '/v1/emails/batch', { json: { emails: [ours.mail(tags(1, 2, 3, 4))] } });
    assertRefused(batch, 429, 'quota_exceeded');
    await setQuota(service.pool, ours.id, null);
    await ours.sent(tags(5, 6, 7, 8));
  });

  it('refuse all of a batch', async () => {
    const ours = await service.organization();
    const batch = (...emails: Record<string, unknown>[]) =>
      ours.call('POST', '/v1/emails/batch', { json: { emails: emails.map((fields) => ours.mail(fields)) } });
    assertRefused(await batch(tags(1, 2), tags(3, 4), tags(5)), 409, 'limit_exceeded');
    assert.equal(await stored(ours), 0);
    assert.deepEqual(await listed(ours), []);
    assert.equal((await batch(tags(1, 2), tags(2, 3), tags(4))).status, 202);
    assertRefused(await batch(tags(1), tags(6)), 409, 'limit_exceeded');
    assert.equal(await stored(ours), 3);
  });

  it('get 409 in SMS and chat-app messages too, after every other error', async () => {
    const ours = await service.organization();
    await ours.addSender('+12025550142', ['US']);
    const { number } = await connectNumber(ours);
    const sms = (fields: object) =>
      ours.call('POST', '/v1/sms', { json: { to: '+12025550199', text: 'Hi.', ...fields } });
    const chat = (fields: object) =>
      ours.call('POST', '/v1/chatapp', { json: { to: '+14165550123', text: 'Hi.', ...fields } });
    assert.equal((await sms(tags(1, 2))).status, 202);
    assertRefused(await sms({ to: '+447400123456', ...tags(3, 4) }), 422, 'no_sms_sender');
    assertRefused(await chat({ from: '+12025550100', ...tags(5, 6) }), 422, 'no_chatapp_account', 'from');
    assert.equal((await chat({ from: number, ...tags(3, 4) })).status, 202);
    assertRefused(await sms(tags(5)), 409, 'limit_exceeded');
    assertRefused(await chat(tags(5)), 409, 'limit_exceeded');
    assertRefused(await ours.send(tags(5)), 409, 'limit_exceeded');
    assert.equal((await sms(tags(4))).status, 202);
    assert.deepEqual(await listed(ours), [], 'GET /v1/emails/tags counts emails only');
  });

  it('return 409 after every other error, and an email that is refused registers no tags', async () => {
    const ours = await service.organization();
    const from = 'a@not-registered.example';
    assertRefused(await ours.send({ from, ...tags(1, 2, 3, 4) }), 403, 'domain_not_found', 'from');
    await ours.sent(tags(5, 6, 7, 8));
    assertRefused(await ours.send({ from, ...tags(9) }), 403, 'domain_not_found', 'from');
  });

  it('are counted exactly when requests and processes bring new ones concurrently', async () => {
    const ours = await service.organization();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => ours.send(tags(n % 10))));
    const accepted = answers.filter(({ status }) => status === 202);
    assert.ok(accepted.length >= LIMIT, `${accepted.length} were accepted`);
    assert.equal((await listed(ours)).length, LIMIT);
    assert.equal(await stored(ours), accepted.length);

    const other = await service.organization();
    const processes = [1, 2, 3].map(() => makeTagRegistry(service.pool, LIMIT));
    const registering = processes.flatMap((registry, process) =>
      Array.from({ length: 5 }, async (_, n) => {
        const found = new Map<string, { name: string; value: string }>();
        registry.collectUnknown(other.id, [{ name: `p${process}`, value: `${n}` }], found);
        await registry.register(other.id, found);
      }),
    );
    const results = await Promise.allSettled(registering);
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, LIMIT);
    const { rowCount } = await service.pool.query('SELECT FROM tag_counts WHERE org_id = $1', [other.id]);
    assert.equal(rowCount, LIMIT);
  });
});

it('lists more tags than it holds in memory at a time, each once and in order', async () => {
  const ours = await service.organization();
  await service.pool.query(
    `INSERT INTO tag_counts (org_id, name, value, emails)
     SELECT $1, 'many', 'v' || n, CASE WHEN n % 100 = 0 THEN 0 ELSE n END FROM generate_series(1, 12000) AS n`,
    [ours.id],
  );
  await service.pool.query(
    `INSERT INTO tag_additions (org_id, name, value, emails)
     VALUES ($1, 'many', 'v1', 5), ($1, 'many', 'v100', 7), ($1, 'zlast', 'v', 1), ($1, 'afirst', 'v', 1)`,
    [ours.id],
  );
  const answer = await ours.call('GET', '/v1/emails/tags');
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  const { tags: all } = answer.body as { tags: { name: string; value: string; count: number }[] };
  const expected = Array.from({ length: 12_000 }, (_, i) => i + 1)
    .map((n) => ({ name: 'many', value: `v${n}`, count: n === 1 ? 6 : n === 100 ? 7 : n % 100 === 0 ? 0 : n }))
    // Tags without an email are registered only.
    .filter(({ count }) => count > 0)
    .sort((a, b) => (a.value < b.value ? -1 : 1));
  const single = (name: string) => ({ name, value: 'v', count: 1 });
  assert.deepEqual(all, [single('afirst'), ...expected, single('zlast')]);
});
