import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { makeProgram } from '../../src/main/admin/program.ts';
import { ROOT } from '../support/root.ts';
import { command, runProcess } from './command-line.ts';

/** All commands that do something, by their full names. */
function executableCommands(parent: Command, path: readonly string[] = []): [string, Command][] {
  if (parent.commands.length === 0) return [[path.join(' '), parent]];
  return parent.commands.flatMap((each) => executableCommands(each, [...path, each.name()]));
}

const program = makeProgram('sendwright');
const commands = executableCommands(program);

describe('help of the command line', () => {
  it('has a sentence for every command and a description of every option', () => {
    assert.ok(commands.length > 30, `${commands.length} commands`);
    for (const [name, each] of commands) {
      assert.match(each.description(), /^[A-Z].*\.$/, name);
      for (const option of each.options) assert.notEqual(option.description, '', `${name} ${option.flags}`);
    }
    for (const group of program.commands) assert.notEqual(group.description(), '', group.name());
  });

  it('has a line for every command in docs/command-line.md', async () => {
    const text = await readFile(join(ROOT, 'docs/command-line.md'), 'utf8');
    const missing = commands.filter(([name]) => !new RegExp(`(?:sendwright|admin --|\`) ?${name}\\b`).test(text));
    assert.deepEqual(
      missing.map(([name]) => name),
      [],
    );
  });

  for (const [args, pattern] of [
    [['--help'], /^Usage: sendwright \[options\] \[command\]\n[^]* {2}key +API keys of organizations\n/],
    [['key', '-h'], /^Usage: sendwright key [^]*\n {2}create \[options\] +Create an API key/],
    [['help', 'key'], /^Usage: sendwright key /],
    [['key', 'create', '--help'], /^Usage: sendwright key create \[options\]\n\nCreate an API key[^]*--domain <name>/],
  ] as const) {
    it(`is printed by ${args.join(' ')} on standard output, without a database or a key`, async () => {
      const { code, out, err } = await command(args, {});
      assert.deepEqual([code, err], [0, '']);
      assert.match(out, pattern);
    });
  }

  it('names npm run admin where that started the command', async () => {
    const { code, err } = await runProcess(['key', 'revoke'], { npm_lifecycle_event: 'admin' });
    assert.equal(code, 2);
    assert.ok(err.endsWith('\nHelp: npm run admin -- key revoke --help\n'), err);
  });

  it('prints the version of package.json for --version', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    assert.deepEqual(await command(['--version'], {}), { code: 0, out: `${version}\n`, err: '' });
  });
});
