import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import getPort from 'get-port';
import { Webhook } from 'standardwebhooks';
import { useService } from '../http/service.ts';
import { blocks, type Document, documents } from '../support/documents.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/folder.ts';
import { isInstalled, run } from './installed.ts';

/** Runs the programs of docs/languages.md. A language whose interpreter is not installed is skipped and named. */
const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const BODY = JSON.stringify({ id: 'evt_1', type: 'email.delivered', data: { subject: 'Grüße' } });

interface Language {
  readonly heading: string;
  readonly fence: string;
  /** Prints its version and exits with 0 if the language is installed. */
  readonly probe: readonly [program: string, ...args: string[]];
  /** Starts a file. The endpoint of Ruby needs a server, which its driver stands in for. */
  readonly send: (file: string) => readonly [program: string, ...args: string[]];
  readonly listen: (file: string, port: number) => readonly [program: string, ...args: string[]];
  readonly extension: string;
}

/** Serves the Rack application of a file: Ruby comes without an HTTP server. */
const RACK = `
require 'socket'
require 'stringio'
def run(app) = $app = app
load ARGV[0]
server = TCPServer.new('127.0.0.1', ARGV[1].to_i)
loop do
  client = server.accept
  env = {}
  client.gets
  while (line = client.gets.chomp) != ''
    name, value = line.split(': ', 2)
    env["HTTP_#{name.upcase.tr('-', '_')}"] = value
  end
  env['rack.input'] = StringIO.new(client.read(env.fetch('HTTP_CONTENT_LENGTH', '0').to_i))
  status, = $app.call(env)
  client.write("HTTP/1.1 #{status} X\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
  client.close
end
`;

const LANGUAGES: readonly Language[] = [
  {
    heading: 'Node.js',
    fence: 'js',
    probe: [process.execPath, '--version'],
    send: (file) => [process.execPath, file],
    listen: (file) => [process.execPath, file],
    extension: 'mjs',
  },
  {
    heading: 'Python',
    fence: 'python',
    probe: ['python3', '--version'],
    send: (file) => ['python3', file],
    listen: (file) => ['python3', file],
    extension: 'py',
  },
  {
    heading: 'PHP',
    fence: 'php',
    probe: ['php', '--version'],
    send: (file) => ['php', file],
    listen: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
    extension: 'php',
  },
  {
    heading: 'Ruby',
    fence: 'ruby',
    probe: ['ruby', '--version'],
    send: (file) => ['ruby', file],
    listen: (file, port) => ['ruby', '-e', RACK, file, String(port)],
    extension: 'rb',
  },
  {
    heading: 'Go',
    fence: 'go',
    probe: ['go', 'version'],
    send: (file) => ['go', 'run', file],
    listen: (file) => ['go', 'run', file],
    extension: 'go',
  },
];

const service = await useService();
const { key, domain } = await service.organization();
const all = await documents();
const languages = documentAt('docs/languages.md');

function documentAt(path: string): Document {
  const found = all.find((document) => document.path === path);
  assert.ok(found, `there is ${path}`);
  return found;
}

/** The part of the document below a heading. */
function section(heading: string): Document {
  const [, text = ''] = languages.text.split(`\n## ${heading}\n`);
  return { path: heading, text: text.split(/^## /m)[0] ?? '' };
}

/** The programs of a language as the test runs them: with its service, its domain and a free port. */
async function programs(t: TestContext, { heading, fence, extension }: Language, port: number): Promise<string[]> {
  const folder = await temporaryFolder(t);
  return Promise.all(
    blocks(section(heading), fence).map(async ({ text }, index) => {
      const file = join(folder, `program-${index}.${extension}`);
      const ours = text
        .replaceAll('http://127.0.0.1:3000', service.url)
        .replaceAll('demo.sendwright.example', domain)
        .replaceAll('4000', String(port));
      await writeFile(file, ours);
      return file;
    }),
  );
}

/** Headers of a delivery that is signed at a time. */
function signed(at = new Date(), body = BODY): Record<string, string> {
  return {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Webhook(SECRET).sign('evt_1', at, body),
  };
}

/** Starts an endpoint that ends with the test. */
function start(t: TestContext, [program, ...args]: readonly [string, ...string[]]): void {
  // Its own process group: `go run` starts the program as its child, and removes its files after SIGINT only.
  const env = { ...process.env, WEBHOOK_SECRET: SECRET };
  const { pid } = spawn(program, args, { env, stdio: 'ignore', detached: true });
  t.after(() => {
    if (pid !== undefined) process.kill(-pid, 'SIGINT');
  });
}

for (const language of LANGUAGES) {
  test(`the ${language.heading} programs send and read an email, and accept signed events only`, async (t) => {
    if (!(await isInstalled(t, language.heading, language.probe))) return;
    const port = await getPort();
    const [send = '', webhook = '', ...others] = await programs(t, language, port);
    assert.ok(webhook !== '' && others.length === 0, 'two programs');
    assert.match(await run(language.send(send), { API_KEY: key }), /^em_\w+ queued\n$/);
    await assert.rejects(run(language.send(send), { API_KEY: 'sw_live_wrong' }), /401|unauthorized/i);

    start(t, language.listen(webhook, port));
    const post = async (headers: Record<string, string>, body = BODY) =>
      (await fetch(`http://127.0.0.1:${port}/hooks`, { method: 'POST', headers, body })).status;
    await eventually(
      `${language.heading} listens`,
      async () => (await post({}).catch(() => undefined)) !== undefined,
      240_000,
    );
    const headers = signed();
    assert.equal(await post(headers), 204);
    const rotated = { ...headers, 'webhook-signature': `v1,${'A'.repeat(43)}= ${headers['webhook-signature']}` };
    assert.equal(await post(rotated), 204, 'two signatures');
    assert.equal(await post({}), 401, 'no headers');
    assert.equal(await post(headers, BODY.replace('delivered', 'bounced')), 401, 'another body');
    assert.equal(await post({ ...headers, 'webhook-id': 'evt_2' }), 401, 'another id');
    assert.equal(await post(signed(new Date(Date.now() - 3_600_000))), 401, 'an hour ago');
  });
}

test('the shell commands of docs/webhooks.md accept signed events only', async (t) => {
  const [verify] = blocks(documentAt('docs/webhooks.md'), 'sh').filter(({ info }) => info[1] === 'verify');
  const folder = await temporaryFolder(t);
  await writeFile(join(folder, 'body.json'), BODY);
  const headers = Object.entries(signed()).map(([name, value]) => [name.toUpperCase().replace('-', '_'), value]);
  const env = { ...(Object.fromEntries(headers) as Record<string, string>), WEBHOOK_SECRET: SECRET };
  const command = ['sh', '-euc', `cd ${folder}\n${verify?.text ?? ''}`] as const;
  assert.equal(await run(command, env), 'valid\n');
  await assert.rejects(run(command, { ...env, WEBHOOK_ID: 'evt_2' }), /invalid/);
});
