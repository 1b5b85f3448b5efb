import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { run } from '../../../dev/environment/command.ts';
import { download } from '../../../dev/environment/download.ts';
import { httpServer } from '../../providers/servers.ts';
import { temporaryFolder } from '../../support/folder.ts';

const ARTIFACT = { name: 'cli', version: 'v1.8.2', query: { format: 'tar.gz' } } as const;

async function attempt(t: TestContext, origin: string) {
  const folder = await temporaryFolder(t);
  const details: string[] = [];
  const step = { detail: (text: string) => details.push(text), rename: () => undefined };
  return { details, result: download(ARTIFACT, folder, step, undefined, origin) };
}

test('extracts the program from the archive and reports megabytes', async (t) => {
  const folder = await temporaryFolder(t);
  await mkdir(join(folder, 'inner'));
  await writeFile(join(folder, 'inner/temporal'), '#!/bin/sh\necho it runs\n');
  await chmod(join(folder, 'inner/temporal'), 0o755);
  await promisify(execFile)('tar', ['-czf', join(folder, 'a.tgz'), '-C', folder, 'inner']);
  const archive = await readFile(join(folder, 'a.tgz'));
  const requests: string[] = [];
  const origin = await httpServer(t, (request, response) => {
    requests.push(request.url ?? '');
    if (request.url === '/archive') return response.end(archive);
    const archiveUrl = `http://${request.headers.host ?? ''}/archive`;
    return response.end(JSON.stringify({ archiveUrl, fileToExtract: 'inner/temporal' }));
  });
  const { result, details } = await attempt(t, origin);
  assert.equal(await run(await result, []), 'it runs');
  assert.match(requests[0] ?? '', /^\/cli\/v1\.8\.2\?platform=(linux|darwin)&arch=(amd64|arm64)&format=tar\.gz$/);
  assert.match(details[0] ?? '', /^0\.0 of 0\.0 MB$|^0\.0 MB$/);
});

test('fails if the archive breaks off', async (t) => {
  const origin = await httpServer(t, (request, response) => {
    if (request.url !== '/archive') {
      const archiveUrl = `http://${request.headers.host ?? ''}/archive`;
      response.end(JSON.stringify({ archiveUrl, fileToExtract: 'temporal' }));
      return;
    }
    response.writeHead(200, { 'content-length': '1000' });
    response.write('x'.repeat(100), () => response.destroy());
  });
  await assert.rejects((await attempt(t, origin)).result);
});
