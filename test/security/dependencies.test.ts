import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly overrides: Readonly<Record<string, string>>;
}
interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
}

const ROOT = new URL('../../', import.meta.url);
const read = async (file: string): Promise<unknown> => JSON.parse(await readFile(new URL(file, ROOT), 'utf8'));

describe('installed packages', () => {
  it('have exact versions', async () => {
    const { dependencies, devDependencies, overrides } = (await read('package.json')) as Manifest;
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...overrides })) {
      assert.match(version, /^\d+\.\d+\.\d+(?:-[\w.]+)?$/, name);
    }
  });

  it('have a hash in the lock file, and come from a registry', async () => {
    const { packages } = (await read('package-lock.json')) as { packages: Readonly<Record<string, Locked>> };
    const installed = Object.entries(packages).filter(([path]) => path !== '');
    assert.ok(installed.length > 100, `${installed.length} packages`);
    for (const [path, { version, integrity, resolved, link }] of installed) {
      assert.match(version ?? '', /^\d/, path);
      assert.match(integrity ?? '', /^sha512-/, path);
      assert.ok(!link && !/^(?:git|file|http):/.test(resolved ?? ''), path);
    }
  });
});
