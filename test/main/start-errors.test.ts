import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { reportsPortInUse } from '../../dev/environment/ports.ts';
import { useDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { testNamespace } from '../support/temporal.ts';
import { unstalledMs } from '../support/unstalled-time.ts';
import { forkWorker, runProcess } from './command-line.ts';

const { url } = await useDatabase();
const env = {
  DATABASE_URL: url,
  LOG_LEVEL: 'silent',
  SECRET_KEY,
  TEMPORAL_ADDRESS: '127.0.0.1:1',
};

/** Asserts that a process ends with 1 and one line on standard error. @returns the line */
async function fails(program: string, args: readonly string[], more: Readonly<Record<string, string>>) {
  const { code, err } = await runProcess(args, { ...env, ...more }, { input: '', program });
  assert.equal(code, 1, err);
  assert.match(err, /^[^\n]+\n$/);
  return err;
}

test('the API names PORT and HOST if it cannot listen there', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const PORT = String((taken.address() as AddressInfo).port);
  const line = await fails('api', [], { PORT, SENDWRIGHT_HOME: await temporaryFolder(t) });
  assert.match(line, new RegExp(`^PORT ${PORT} of HOST 127\\.0\\.0\\.1 cannot be used: .*EADDRINUSE`));
  assert.ok(reportsPortInUse(line));
  const HOST = '192.0.2.1';
  assert.match(await fails('api', [], { HOST }), /^PORT 3000 of HOST 192\.0\.2\.1 cannot be used: .*EADDRNOTAVAIL/);
});

describe('a process with Temporal settings that cannot be read names them', () => {
  for (const [program, args] of [
    ['api', []],
    ['worker', ['--fleets', 'upkeep']],
  ] as const) {
    for (const [settings, reason] of [
      [{ TEMPORAL_PROFILE: 'absent' }, "Profile 'absent' not found in config data"],
      [{ TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/absent.pem' }, "ENOENT: no such file or directory, open '/absent.pem'"],
    ] as const) {
      test(`${program} with ${Object.keys(settings).join()}`, async () => {
        assert.equal(
          await fails(program, args, settings),
          `Temporal's settings cannot be used (${reason}): check TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE and the files of TEMPORAL_TLS_…_PATH\n`,
        );
      });
    }
  }
});

describe('a process ends with one line if a switch of Temporal is neither true nor false', () => {
  for (const [program, args] of [
    ['api', []],
    ['worker', ['--fleets', 'upkeep']],
  ] as const) {
    for (const [name, value] of [
      ['TEMPORAL_TLS', 'yes'],
      ['TEMPORAL_TLS_DISABLE_HOST_VERIFICATION', 'True'],
    ] as const) {
      test(`${program} with ${name}=${value}`, async () => {
        const line = await fails(program, args, { [name]: value, TEMPORAL_PROFILE: 'absent' });
        assert.ok(line.startsWith(`${name} is malformed: `) && line.endsWith(`for example ${name}=true\n`), line);
      });
    }
  }
});

test('a worker that is stopped while it starts ends promptly with 0', async (t) => {
  const temporal = await testNamespace();
  t.after(() => temporal.close());
  const [host = '', port = ''] = temporal.address.split(':');
  const sockets: Socket[] = [];
  let hasSignal = false;
  // The worker gets the signal before it is connected.
  const proxy = createServer((near) => {
    if (!hasSignal) worker.kill('SIGTERM');
    setTimeout(
      () => {
        const far = connect(Number(port), host);
        for (const socket of [near, far]) socket.on('error', () => undefined);
        sockets.push(near, far);
        near.pipe(far).pipe(near);
      },
      hasSignal ? 0 : 300,
    );
    hasSignal = true;
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const worker = forkWorker(t, 'upkeep', {
    ...{ ...env, SENDWRIGHT_HOME: await temporaryFolder(t), SHUTDOWN_TIMEOUT: '30s' },
    TEMPORAL_ADDRESS: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    TEMPORAL_NAMESPACE: temporal.namespace,
  });
  const began = unstalledMs();
  assert.deepEqual(await once(worker, 'exit'), [0, null]);
  assert.ok(hasSignal);
  assert.ok(unstalledMs() - began < 25_000, `${unstalledMs() - began} ms`);
});
