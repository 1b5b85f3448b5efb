import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Writes shell scripts that replace programs. @returns the `PATH` on which they come first */
export async function writePrograms(folder: string, scripts: Readonly<Record<string, string>>): Promise<string> {
  const bin = join(folder, 'bin');
  await mkdir(bin);
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  return `${bin}:${process.env['PATH'] ?? ''}`;
}
