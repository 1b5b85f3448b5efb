import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { readSettings } from '../../src/main/env.ts';
import { makeEmailProviders, updateCredentialPauses } from '../../src/main/wiring/email-providers.ts';
import { openPauses, readPauses } from '../../src/store/upkeep/provider-pauses.ts';
import { outgoing } from '../providers/outgoing.ts';
import { CALL } from '../providers/simulator.ts';
import { testDatabase } from '../support/database.ts';

/** Sets only these settings of email providers for a test. */
function setEnvironment(t: TestContext, settings: Record<string, string>): void {
  const before = { ...process.env };
  t.after(() => {
    process.env = before;
  });
  const none = { EMAIL_PROVIDERS: '', POSTMARK_SERVER_TOKEN: '', SMTP_URL: '' };
  Object.assign(process.env, none, { POSTMARK_SERVER_TOKEN_FILE: '', SMTP_URL_FILE: '' }, settings);
}

const POSTMARK_FILE = '/dev/null';

describe('an email provider without credentials', () => {
  test('returns account for every email and logs the missing setting', async (t) => {
    setEnvironment(t, { EMAIL_PROVIDERS: 'postmark,smtp' });
    const lines: unknown[] = [];
    const providers = makeEmailProviders(readSettings(), { error: (line: unknown) => void lines.push(line) });
    assert.deepEqual(lines, [
      { provider: 'postmark', set: ['POSTMARK_SERVER_TOKEN'] },
      { provider: 'smtp', set: ['SMTP_URL'] },
    ]);
    for (const provider of providers) {
      const outcomes = await provider.send([outgoing(), outgoing()], CALL);
      assert.deepEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(['account']));
    }
  });

  test('names every possible setting and its file when no provider is chosen', async (t) => {
    setEnvironment(t, { POSTMARK_SERVER_TOKEN_FILE: POSTMARK_FILE });
    const lines: unknown[] = [];
    const [provider] = makeEmailProviders(readSettings(), { error: (line: unknown) => void lines.push(line) });
    const set = [`POSTMARK_SERVER_TOKEN (file ${POSTMARK_FILE})`, 'SMTP_URL'];
    assert.deepEqual(lines, [{ provider: 'postmark', set }]);
    const [outcome] = (await provider?.send([outgoing()], CALL)) ?? [];
    assert.equal(
      outcome && 'detail' in outcome && outcome.detail,
      `There are no credentials for this provider. Set ${set.join(' or ')}, then restart the email workers.`,
    );
  });

  test('is paused from the start, until a worker starts with credentials; other pauses stay', async (t) => {
    const { pool, drop } = await testDatabase(2);
    t.after(drop);
    const log = { warn: (fields: object) => assert.fail(JSON.stringify(fields)) };
    const paused = async () => (await readPauses(pool)).map(({ provider, sender }) => [provider, sender].join(' '));
    setEnvironment(t, { EMAIL_PROVIDERS: 'postmark,smtp' });
    await updateCredentialPauses(readSettings(), pool, log);
    await openPauses(pool, [{ provider: 'postmark', sender: 'a.example', reason: 'The domain is not confirmed.' }]);
    assert.deepEqual(await paused(), ['postmark ', 'postmark a.example', 'smtp ']);
    Object.assign(process.env, { POSTMARK_SERVER_TOKEN: 'token' });
    await updateCredentialPauses(readSettings(), pool, log);
    assert.deepEqual(await paused(), ['postmark a.example', 'smtp ']);
    await openPauses(pool, [{ provider: 'postmark', sender: '', reason: 'The token is wrong.' }]);
    await updateCredentialPauses(readSettings(), pool, log);
    assert.deepEqual(await paused(), ['postmark ', 'postmark a.example', 'smtp ']);
  });
});
