import { test } from 'node:test';
import { FULL } from '../support/own-servers.ts';
import { loseAndRestore } from './restoring.ts';

test('nor does it where Temporal lived on and knows of workflows that have ended since', async (t) => {
  if (FULL) await loseAndRestore(t, 'ahead');
  else t.diagnostic('only by npm run compose:check: it takes two minutes');
});
