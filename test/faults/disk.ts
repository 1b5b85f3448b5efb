import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.ts';

/** Attachments of 20 runs are kept for a month: 12 MB each. */
const files = smallDisk('files', 512);
const FILE = Buffer.alloc(150_000, 'x').toString('base64');
const FILES = 40;

/** For the cluster of 20 runs with its log. Unused space costs no memory until the disk is filled. */
const database = smallDisk('postgres', 3_072);
/** Between two attempts to fill space that Postgres has freed. */
const REFILL_MS = 200;

export const diskFaults: Readonly<Record<string, Fault>> = {
  'disk-full': {
    what: 'the disk with the files is full',
    stack: { files: files.folder },
    missing: files.mount,
    async inject({ generator, random, durationMs, expect }) {
      const attached = { attachments: [{ filename: 'file.txt', content: FILE }] };
      const post = async () => {
        for (let i = 0; i < FILES; i++) await generator.postOne(true, attached);
      };
      const posted = Promise.all([post(), post()]);
      await sleep(random.between(100, 1_000));
      files.fill();
      expect(files.isFull(), 'the disk was filled');
      await sleep(durationMs);
      files.empty();
      await posted;
    },
  },
  'postgres-disk-full': {
    what: "Postgres's disk is full",
    // Below the mount point, since the folder of a cluster may be replaced by a link.
    stack: { postgres: join(database.folder, 'cluster') },
    missing: database.mount,
    async inject({ durationMs, expect }) {
      database.fill();
      expect(database.isFull(), 'the disk was filled');
      for (const until = Date.now() + durationMs; Date.now() < until;) {
        await sleep(REFILL_MS);
        database.fill();
      }
      database.empty();
    },
  },
};

/** A mounted disk that is small enough to be filled. Only root may mount one. */
function smallDisk(name: string, megabytes: number) {
  const folder = join(tmpdir(), `sendwright-faults-disk-${name}-${process.pid}`);
  const ballast = join(folder, 'ballast');
  return {
    folder,
    /** Mounts it. @returns the reason if that is impossible here */
    mount: (): string | undefined => {
      if (process.getuid?.() !== 0) return 'only root may mount a small disk';
      mkdirSync(folder, { recursive: true });
      try {
        const options = ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', folder];
        execFileSync('mount', options, { stdio: 'pipe' });
      } catch {
        rmdirSync(folder);
        return 'a small disk cannot be mounted here';
      }
      process.once('exit', () => {
        execFileSync('umount', [folder]);
        rmdirSync(folder);
      });
      return undefined;
    },
    fill(): void {
      for (const size of [1_048_576, 4_096]) {
        const block = Buffer.alloc(size);
        try {
          for (;;) appendFileSync(ballast, block);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
    },
    isFull: () => statfsSync(folder).bavail === 0,
    empty: () => rmSync(ballast),
  };
}
