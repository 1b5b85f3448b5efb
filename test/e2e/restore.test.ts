import { test } from 'node:test';
import { loseAndRestore } from './restoring.ts';

test('a restored backup loses nothing that it holds, and sends nothing again that was sent since', async (t) => {
  await loseAndRestore(t, 'empty');
});
