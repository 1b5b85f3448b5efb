import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.ts';

const FOLDER = join(tmpdir(), `sendwright-faults-disk-${process.pid}`);
const BALLAST = join(FOLDER, 'ballast');
/** What 20 runs attach stays for a month: 12 MB each. */
const MEGABYTES = 512;
const FILE = Buffer.alloc(150_000, 'x').toString('base64');
const FILES = 40;

/** A disk of its own for the files, small enough to be filled. Whoever may not mount one cannot try this. */
export const diskFull: Fault = {
  what: 'the disk with the files is full',
  stack: { files: FOLDER },
  missing() {
    if (process.getuid?.() !== 0) return 'only root may mount a small disk';
    mkdirSync(FOLDER, { recursive: true });
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${MEGABYTES}m`, 'tmpfs', FOLDER], { stdio: 'pipe' });
    } catch {
      rmdirSync(FOLDER);
      return 'a small disk cannot be mounted here';
    }
    process.once('exit', () => {
      execFileSync('umount', [FOLDER]);
      rmdirSync(FOLDER);
    });
    return undefined;
  },
  async happen({ generator, random, lasts, demand }) {
    const attached = { attachments: [{ filename: 'file.txt', content: FILE }] };
    const post = async () => {
      for (let i = 0; i < FILES; i++) await generator.postOne(true, attached);
    };
    const posted = Promise.all([post(), post()]);
    await sleep(random.between(100, 1_000));
    fill();
    demand(statfsSync(FOLDER).bavail === 0, 'the disk was filled');
    await sleep(lasts);
    rmSync(BALLAST);
    await posted;
  },
};

/** By large pieces, then by small ones. */
function fill(): void {
  for (const size of [1_048_576, 4_096]) {
    const block = Buffer.alloc(size);
    try {
      for (;;) appendFileSync(BALLAST, block);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}
