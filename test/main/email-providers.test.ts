import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeEmailProviders } from '../../src/main/email-providers.ts';
import { outgoing } from '../providers/outgoing.ts';
import { CALL } from '../providers/simulator.ts';

test('a provider without credentials refuses every email for the account, which waits, and the log names the setting', async (t) => {
  const before = { ...process.env };
  t.after(() => {
    process.env = before;
  });
  Object.assign(process.env, { EMAIL_PROVIDERS: 'postmark,smtp', POSTMARK_SERVER_TOKEN: '', SMTP_URL: '' });
  const lines: unknown[] = [];
  const providers = makeEmailProviders({ error: (line: unknown) => void lines.push(line) });
  assert.deepEqual(lines, [
    { provider: 'postmark', missing: 'POSTMARK_SERVER_TOKEN' },
    { provider: 'smtp', missing: 'SMTP_URL' },
  ]);
  for (const provider of providers) {
    const outcomes = await provider.send([outgoing(), outgoing()], CALL);
    assert.deepEqual(new Set(outcomes.map(({ kind }) => kind)), new Set(['account']));
  }
});
