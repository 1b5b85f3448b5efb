import { test } from 'node:test';
import { FULL } from '../support/own-servers.ts';
import { runRestoreScenario } from './backup-scenario.ts';

test('a restored backup loses no message that it contains and repeats none that was sent since', async (t) => {
  await runRestoreScenario(t, 'empty');
});

const skip = !FULL && 'runs in npm run compose:check only, since it takes two minutes';
test('a restored backup loses and repeats nothing if Temporal kept its newer state', { skip }, async (t) => {
  await runRestoreScenario(t, 'ahead');
});
