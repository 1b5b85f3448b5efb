import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useService } from '../http/service.ts';
import { PASSWORD, type Person, signedIn, textOf, visitor } from './visitor.ts';

const service = await useService();
const organization = await service.organization();
const CHROME = 'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36';

/** Signs in with another browser. */
async function elsewhere({ email }: Person) {
  const other = visitor(service);
  const answer = await other.post('/dashboard/sign-in', { email, password: PASSWORD }, { 'user-agent': CHROME });
  assert.equal(answer.status, 303);
  return other;
}

const endPaths = (html: string) =>
  [...html.matchAll(/action="(\/dashboard\/account\/sessions\/[0-9a-f]{64}\/end)"/g)].map(([, path = '']) => path);

describe('the list of sessions', () => {
  it('shows browser and address of each, the current one first, and ends one', async () => {
    const ada = await signedIn(service, organization.id);
    const other = await elsewhere(ada);
    const { html } = await ada.get('/dashboard/account');
    const text = textOf(html);
    assert.match(text, /Firefox on Linux This session Password 192\.0\.2\.1 .*Chrome on Windows Password 127\.0\.0\.1/);
    const [path, ...more] = endPaths(html);
    assert.ok(path !== undefined && more.length === 0, 'only the other session has a button');
    const after = await ada.change(path);
    assert.ok(textOf(after.html).includes('The session was ended.'), textOf(after.html));
    assert.equal((await other.get('/dashboard')).status, 303);
    assert.equal((await ada.get('/dashboard')).status, 200);
    assert.equal((await ada.post(path)).status, 404, 'it has ended already');
  });

  it('contains no session of another user, and ends none', async () => {
    const [ada, bob] = [await signedIn(service, organization.id), await signedIn(service, organization.id)];
    const other = await elsewhere(ada);
    const [path = ''] = endPaths((await ada.get('/dashboard/account')).html);
    assert.deepEqual(endPaths((await bob.get('/dashboard/account')).html), []);
    assert.equal((await bob.post(path)).status, 404);
    assert.equal((await other.get('/dashboard')).status, 200);
  });

  it('ends all others together, and records both in the audit log', async () => {
    const ada = await signedIn(service, organization.id);
    const others = [await elsewhere(ada), await elsewhere(ada), await elsewhere(ada)];
    const [path = ''] = endPaths((await ada.get('/dashboard/account')).html);
    await ada.change(path);
    await ada.change('/dashboard/account/sign-out-others');
    for (const other of others) assert.equal((await other.get('/dashboard')).status, 303);
    assert.equal((await ada.get('/dashboard')).status, 200);
    const { rows } = await service.pool.query(
      `SELECT action, detail FROM audit_log WHERE target = $1 AND action <> 'account.sign-in' ORDER BY at, id`,
      [ada.id],
    );
    assert.deepEqual(rows, [
      { action: 'account.end-session', detail: {} },
      { action: 'account.sign-out-others', detail: { sessions: 2 } },
    ]);
  });

  it('escapes and cuts off what a browser claims to be', async () => {
    const ada = await signedIn(service, organization.id);
    const headers = { 'user-agent': `<b>${'x'.repeat(1_000)}` };
    await visitor(service).post('/dashboard/sign-in', { email: ada.email, password: PASSWORD }, headers);
    const { html } = await ada.get('/dashboard/account');
    assert.ok(textOf(html).includes('Unknown browser'), textOf(html));
    const { rows } = await service.pool.query<{ length: number }>(
      `SELECT max(length(user_agent)) AS length FROM sessions WHERE user_id = $1`,
      [ada.id],
    );
    assert.deepEqual(rows, [{ length: 300 }]);
  });

  it('names no token or digest of a session', async () => {
    const ada = await signedIn(service, organization.id);
    await elsewhere(ada);
    const { html } = await ada.get('/dashboard/account');
    const { rows } = await service.pool.query<{ sha256: string }>(
      `SELECT encode(sha256, 'hex') AS sha256 FROM sessions WHERE user_id = $1`,
      [ada.id],
    );
    assert.equal(rows.length, 2);
    for (const { sha256 } of rows) assert.ok(!html.includes(sha256));
  });
});
