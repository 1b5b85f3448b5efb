import { test } from 'node:test';
import { FULL } from '../support/own-servers.ts';
import { runRestoreScenario } from './backup-scenario.ts';

test('a restored backup loses nothing that it holds and sends nothing again that was sent since', async (t) => {
  await runRestoreScenario(t, 'empty');
});

test('a restored backup does the same if Temporal kept its newer state', async (t) => {
  if (FULL) await runRestoreScenario(t, 'ahead');
  else t.diagnostic('only by npm run compose:check, since it takes two minutes');
});
