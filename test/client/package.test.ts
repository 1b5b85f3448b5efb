import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startService } from '../http/service.ts';
import { temporaryFolder } from '../support/folder.ts';
import { ROOT } from '../support/root.ts';

const execute = promisify(execFile);
/** Bytes of the tarball. Most of them are the types that are generated from the API's description. */
const MAX_TARBALL_BYTES = 50_000;

/** A program of a customer. It compiles only if the package has precise types. */
const PROGRAM = `
import { type BounceReason, Sendwright, SendwrightError, verifyWebhook, type WebhookEvent } from '@sendwright/client';

const [baseUrl = '', apiKey = '', from = ''] = process.argv.slice(2);
const sendwright = new Sendwright({ baseUrl, apiKey });
const { id } = await sendwright.emails.send({ from, to: 'ada@example.net', subject: 'Packed', text: 'Hi.' });
const subjects: string[] = [];
for await (const email of sendwright.emails.list({ status: 'queued' })) subjects.push(email.subject);
const code = await sendwright.emails.get('em_none').catch((error: unknown) => {
  return error instanceof SendwrightError ? error.code : String(error);
});
console.log(JSON.stringify({ status: (await sendwright.emails.get(id)).status, subjects, code }));

export function reasonOf(body: string, headers: Headers, secret: string): [string, string, BounceReason] | undefined {
  const event: WebhookEvent = verifyWebhook(body, headers, secret);
  if (event.type !== 'email.bounced') return undefined;
  return [event.data.recipient, event.data.error, event.data.bounceReason];
}

// @ts-expect-error an email needs a subject
export const wrong = () => sendwright.emails.send({ from: 'a@example.com', to: 'b@example.com', text: 'Hi.' });

// @ts-expect-error a deletion returns nothing
export const deleted = (): Promise<string> => sendwright.domains.delete('dm_1');
`;
const REQUIRED = `
const { Sendwright } = require('@sendwright/client');
const [baseUrl, apiKey] = process.argv.slice(2);
new Sendwright({ baseUrl, apiKey }).emails.list().page().then(({ emails }) => console.log(emails.length));
`;
const STRICT = {
  compilerOptions: {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
  },
  files: ['program.mts'],
};

test('npm run build:client packs a client without dependencies that an unrelated project installs, compiles and runs', async (t) => {
  const folder = await temporaryFolder(t);
  const run = (program: string, ...args: readonly string[]) => execute(program, args, { cwd: folder });
  const build = join(ROOT, 'dev/build/build-client.ts');
  const packed = await execute(process.execPath, ['--import', 'tsx', build, folder], { cwd: ROOT });
  const tarball = packed.stdout.trim();
  const { size } = await stat(tarball);
  t.diagnostic(`the tarball has ${size} bytes`);
  assert.ok(size < MAX_TARBALL_BYTES, `${size} bytes`);

  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'customer', private: true }));
  await run('npm', 'install', '--offline', '--no-audit', '--no-fund', tarball);
  const lock = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as { packages: object };
  assert.deepEqual(Object.keys(lock.packages), ['', 'node_modules/@sendwright/client']);

  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(STRICT));
  await writeFile(join(folder, 'program.mts'), PROGRAM);
  await writeFile(join(folder, 'required.cjs'), REQUIRED);
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  await run(process.execPath, compiler, '-p', folder).catch((error: unknown) =>
    assert.fail((error as { stdout: string }).stdout),
  );

  const service = await startService();
  t.after(() => service.close());
  const { key, domain } = await service.organization();
  const { stdout } = await run(process.execPath, 'program.mjs', service.url, key, `hello@${domain}`);
  assert.deepEqual(JSON.parse(stdout), { status: 'queued', subjects: ['Packed'], code: 'not_found' });
  assert.equal((await run(process.execPath, 'required.cjs', service.url, key)).stdout, '1\n');
});

test('the client has the version and the supported Node of the service', async () => {
  const [ours, its] = await Promise.all(
    ['package.json', 'client/package.json'].map(
      async (path) => JSON.parse(await readFile(join(ROOT, path), 'utf8')) as { version: string; engines: object },
    ),
  );
  assert.deepEqual([its?.version, its?.engines], [ours?.version, ours?.engines]);
});
