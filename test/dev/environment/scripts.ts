import { join } from 'node:path';
import type { PartSpec } from '../../../dev/environment/part.ts';

/** Functions for scripts that replace real parts. */
const PRELUDE = `
  const { appendFileSync, existsSync } = require('node:fs');
  const { spawn } = require('node:child_process');
  const print = (text) => console.log(text);
  const ready = (facts) => process.send({ ready: true, ...facts });
  const live = () => setInterval(() => {}, 1000);
  process.on('disconnect', () => process.exit());
`;

/** A part that runs some lines of JavaScript. It serves after `ready()`. */
export function scripted<Facts = unknown>(
  folder: string,
  name: string,
  script: string,
  within = 2_000,
): PartSpec<Facts> {
  return {
    command: process.execPath,
    args: ['-e', PRELUDE + script, `${folder}/${name}`],
    env: process.env,
    mark: `${folder}/${name}`,
    log: join(folder, `${name}.log`),
    ipc: true,
    waitUntilReady: async (message) => (await message) as Facts,
    stop: [['SIGTERM', within]],
  };
}
