import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeApi } from '../../dev/build/api-description.ts';
import { type Description, endpointsOf } from '../../src/site/render/description.ts';
import { SAMPLES, type SampleRequest } from '../../src/site/render/samples.ts';
import { useService } from '../http/service.ts';
import { temporaryFolder } from '../support/folder.ts';
import { isInstalled, run } from './installed.ts';

/** Runs the requests of the API reference, and checks the syntax of all of them. */
type Command = readonly [program: string, ...args: string[]];

interface Runner {
  readonly extension: string;
  readonly probe: Command;
  readonly start: (file: string) => Command;
  /** Ends with an error unless all files are programs of the language. */
  readonly parse: (files: readonly string[]) => Command;
}

const PARSE_RUBY = 'ARGV.each { |file| RubyVM::InstructionSequence.compile(File.read(file)) }';
const PARSE_PHP = 'foreach (array_slice($argv, 1) as $file) token_get_all(file_get_contents($file), TOKEN_PARSE);';
const PARSE_PYTHON = 'import sys\nfor file in sys.argv[1:]: compile(open(file).read(), file, "exec")';
const PARSE_SHELL = 'for file in "$@"; do sh -n "$file"; done';
const PARSE_NODE = 'for file in "$@"; do node --check "$file"; done';

const RUNNERS: Readonly<Record<string, Runner>> = {
  curl: {
    extension: 'sh',
    probe: ['curl', '--version'],
    start: (file) => ['sh', file],
    parse: (files) => ['sh', '-ec', PARSE_SHELL, 'sh', ...files],
  },
  'Node.js': {
    extension: 'mjs',
    probe: ['node', '--version'],
    start: (file) => ['node', file],
    // Each check starts a process.
    parse: (files) => ['sh', '-ec', PARSE_NODE, 'sh', ...files.slice(0, 10)],
  },
  Python: {
    extension: 'py',
    probe: ['python3', '--version'],
    start: (file) => ['python3', file],
    parse: (files) => ['python3', '-c', PARSE_PYTHON, ...files],
  },
  PHP: {
    extension: 'php',
    probe: ['php', '--version'],
    start: (file) => ['php', file],
    parse: (files) => ['php', '-r', PARSE_PHP, ...files],
  },
  Ruby: {
    extension: 'rb',
    probe: ['ruby', '--version'],
    start: (file) => ['ruby', file],
    parse: (files) => ['ruby', '-e', PARSE_RUBY, ...files],
  },
  Go: {
    extension: 'go',
    probe: ['go', 'version'],
    start: (file) => ['go', 'run', file],
    parse: (files) => ['gofmt', '-l', ...files],
  },
};

const service = await useService();
const { key, domain } = await service.organization();
const api = (await describeApi()) as Description;
const requests = endpointsOf(api).map(({ method, path, security, requestBody }): SampleRequest => {
  const body = requestBody?.content['application/json']?.example;
  return { method, url: service.url + path, needsKey: security?.length !== 0, body };
});

/** Values that differ between languages. */
const EMAIL = {
  from: `Grüße <hello@${domain}>`,
  to: ['ada@example.net'],
  cc: null,
  subject: `It's "5 $HOME" \\ 100 % #{1} \``,
  text: 'Hi.',
  marketing: true,
  tags: [{ name: 'kind', value: 'receipt' }],
  headers: {},
};

test('there is a runner for every language', () => {
  assert.deepEqual(
    SAMPLES.map(({ name }) => name),
    Object.keys(RUNNERS),
  );
});

for (const { name, make } of SAMPLES) {
  test(`the requests of the reference are ${name}, and send what they show`, async (t) => {
    const runner = RUNNERS[name];
    assert.ok(runner);
    if (!(await isInstalled(t, name, runner.probe))) return;
    const folder = await temporaryFolder(t);
    const write = async (request: SampleRequest, index: number): Promise<string> => {
      const file = join(folder, `sample-${index}.${runner.extension}`);
      await writeFile(file, make(request));
      return file;
    };
    await run(runner.parse(await Promise.all(requests.map(write))));

    const send = { method: 'POST', url: `${service.url}/v1/emails`, needsKey: true, body: EMAIL };
    const answer = await run(runner.start(await write(send, 1000)), { API_KEY: key });
    const [id = ''] = /em_\w+/.exec(answer) ?? [];
    assert.notEqual(id, '', answer);
    const { body } = await service.call('GET', `/v1/emails/${id}`, { key });
    const { from, subject, marketing, tags } = body as typeof EMAIL;
    assert.deepEqual(
      { from, subject, marketing, tags },
      {
        from: EMAIL.from,
        subject: EMAIL.subject,
        marketing: EMAIL.marketing,
        tags: EMAIL.tags,
      },
    );
    const health = { method: 'GET', url: `${service.url}/healthz`, needsKey: false, body: undefined };
    assert.match(await run(runner.start(await write(health, 1001))), /"status":"ok"/);
    const remove = {
      method: 'DELETE',
      url: `${service.url}/v1/suppressions/x@example.com`,
      needsKey: true,
      body: undefined,
    };
    const removed = await run(runner.start(await write(remove, 1002)), { API_KEY: key }).catch(String);
    assert.match(removed, /404|not_found/);
  });
}
