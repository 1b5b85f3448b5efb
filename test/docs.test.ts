import assert from 'node:assert/strict';
import { access, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';
// Writes the client's types, which the examples in the documents need and git does not have.
import '../dev/build/client-types.ts';
import { Sendwright } from '../client/index.ts';
import { SETTINGS } from '../src/settings.ts';
import { CHAT_STATUSES } from '../src/domain/chat/chat.ts';
import { BOUNCE_REASONS_IN_WORDS } from '../src/domain/bounces/reasons.ts';
import { BLOCKED_EXTENSIONS } from '../src/domain/email/blocked-files.ts';
import { CONTROL_HEADERS, SERVER_HEADERS } from '../src/domain/email/control-headers.ts';
import { BOUNCE_REASONS, EMAIL_STATUSES } from '../src/domain/email/email.ts';
import type { ErrorCode } from '../src/domain/errors.ts';
import { EVENT_TYPES } from '../src/domain/event-types.ts';
import { REFUSED_HEADERS } from '../src/domain/rules.ts';
import { SUPPRESSING } from '../src/domain/email/suppression.ts';
import { ERRORS } from '../src/http/docs/errors.ts';
import { STATUS } from '../src/http/plugins/errors.ts';
import { blocks, type Document, documents } from './support/documents.ts';

/** Compares README.md and docs/ with the code, as far as that is possible. Their commands are run by test/e2e/docs.test.ts. */
const ROOT = join(import.meta.dirname, '..');
const all = await documents();

function documentAt(path: string): Document {
  const found = all.find((document) => document.path === path);
  assert.ok(found, `there is ${path}`);
  return found;
}

/** The rows of a document's tables, by their cells. */
function rows({ text }: Document): string[][] {
  const lines = text.split('\n').filter((line) => line.startsWith('|'));
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** The words in backticks that stand in a column, without its heading. */
function words(path: string, column: number): string[] {
  return rows(documentAt(path)).flatMap((cells) => /^`([^`]+)`$/.exec(cells[column] ?? '')?.[1] ?? []);
}

/** Replaces the first table of a document, or compares it if `DOCS=write` is not set. */
async function checkTable(path: string, heading: string, rows: readonly string[]): Promise<void> {
  const { text } = documentAt(path);
  const separator = heading.replaceAll(/[^|]+/g, '-');
  const table = [heading, separator, ...rows, ''].join('\n');
  const file = join(ROOT, path);
  const options = { ...(await resolveConfig(file)), parser: 'markdown' };
  const made = await format(
    text.replace(/^\|[\s\S]*?\n(?=\n|$(?![\s\S]))/m, () => table),
    options,
  );
  if (process.env['DOCS'] === 'write') await writeFile(file, made);
  else assert.equal(text, made);
}

test('docs/settings.md lists every setting with its default and meaning: npm run docs:tables writes it', () =>
  checkTable(
    'docs/settings.md',
    '|setting|default|meaning|',
    Object.entries(SETTINGS).map(([name, setting]) => {
      return `| \`${name}\` | ${'fallback' in setting ? `\`${setting.fallback}\`` : ''} | ${setting.meaning} |`;
    }),
  ));

test('docs/errors.md lists every error code: npm run docs:tables writes it', () =>
  checkTable(
    'docs/errors.md',
    '|status|code|when|',
    Object.entries(ERRORS).flatMap(([code, docs]) =>
      [docs].flat().map(({ when }) => `| ${STATUS[code as ErrorCode]} | \`${code}\` | ${when} |`),
    ),
  ));

test('docs/webhooks.md lists every event, docs/statuses.md every status', () => {
  assert.deepEqual(words('docs/webhooks.md', 0).sort(), [...EVENT_TYPES].sort());
  assert.deepEqual(
    words('docs/statuses.md', 0).filter((word) => (EMAIL_STATUSES as readonly string[]).includes(word)),
    EMAIL_STATUSES,
  );
});

test('docs/bounce-reasons.md lists every reason, and whether it suppresses', () => {
  const listed = rows(documentAt('docs/bounce-reasons.md')).filter(([, suppresses = '']) =>
    /^(?:yes|no)$/.test(suppresses),
  );
  assert.deepEqual(
    listed,
    BOUNCE_REASONS.map((reason) => {
      const { meaning, remedy } = BOUNCE_REASONS_IN_WORDS[reason];
      return [`\`${reason}\``, SUPPRESSING[reason] ? 'yes' : 'no', meaning, remedy];
    }),
  );
});

test('docs/client.md lists every method of the client, and no other', () => {
  const client = new Sendwright({ baseUrl: 'http://127.0.0.1:3000', apiKey: 'key' });
  const listed = rows(documentAt('docs/client.md')).flatMap(([name = '', methods = '']) => {
    const { 1: resource } = /^`(\w+)`$/.exec(name) ?? [];
    const isResource = resource !== undefined && resource in client;
    return isResource ? [[resource, [...methods.matchAll(/`(\w+)`/g)].map(({ 1: method }) => method).sort()]] : [];
  });
  assert.deepEqual(
    Object.fromEntries(listed),
    Object.fromEntries(Object.entries(client).map(([name, methods]) => [name, Object.keys(methods as object).sort()])),
  );
});

test('docs/whatsapp-sms.md lists every status of a chat-app message', () => {
  const [, sentence = ''] = /^The statuses are ([^.]*)\./m.exec(documentAt('docs/whatsapp-sms.md').text) ?? [];
  assert.deepEqual(
    [...sentence.matchAll(/`(\w+)`/g)].map(({ 1: status }) => status),
    CHAT_STATUSES,
  );
});

/** The words in backticks below a heading, up to the next heading. */
function wordsBelow(path: string, heading: string): string[] {
  const { text } = documentAt(path);
  const [, section] = text.split(`\n${heading}\n`);
  assert.ok(section !== undefined, `${path} has ${heading}`);
  return [...(section.split(/^#/m)[0] ?? '').matchAll(/`([^`]+)`/g)].map(({ 1: word = '' }) => word);
}

test('docs/sending.md lists every blocked file extension, and no other', () => {
  const listed = wordsBelow('docs/sending.md', '### Blocked file types').filter((word) => /^\.\w/.test(word));
  assert.deepEqual(listed.sort(), [...BLOCKED_EXTENSIONS].map((extension) => `.${extension}`).sort());
});

test('docs/sending.md lists every refused header name, and no other', () => {
  const names = wordsBelow('docs/sending.md', '## Headers').filter((word) => /^[A-Z][A-Za-z0-9-]*$/.test(word));
  assert.deepEqual(
    names.map((name) => name.toLowerCase()).sort(),
    [...REFUSED_HEADERS, 'resent-', ...CONTROL_HEADERS, ...SERVER_HEADERS].sort(),
  );
});

test('every link between files leads somewhere', async () => {
  const broken: string[] = [];
  for (const { path, text } of all) {
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const [file = '', anchor] = target.split('#');
      const to = file === '' ? path : join(dirname(path), file);
      const isThere = await access(join(ROOT, to)).then(
        () => true,
        () => false,
      );
      const other = all.find((document) => document.path === to);
      if (!isThere || (anchor !== undefined && other && !anchors(other).includes(anchor)))
        broken.push(`${path}: ${target}`);
    }
  }
  assert.deepEqual(broken, []);
});

/** As GitHub names headings. */
function anchors({ text }: Document): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(({ 1: heading = '' }) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/**
 * The compiler's errors in the TypeScript of documents, by document and line. The blocks of one document are one module, as
 * a reader takes them who goes from top to bottom.
 */
function problems(examples: readonly Document[]): string[] {
  const modules = new Map(
    examples.map(({ path, text }) => {
      const lines = Array.from({ length: text.split('\n').length }, () => '');
      for (const { text: code, line } of blocks({ path, text }, 'ts')) {
        code.split('\n').forEach((each, index) => (lines[line - 1 + index] = each));
      }
      return [join(ROOT, `${path}.ts`), lines.join('\n')];
    }),
  );
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
    config: object;
  };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  // What others set in their projects is theirs: these are the compiler's own, as strict as they go by one word.
  const strict = { ...options, noUnusedLocals: false, noPropertyAccessFromIndexSignature: false };
  const compilerOptions = { ...strict, paths: { '@sendwright/client': [join(ROOT, 'client/index.ts')] } };
  const host = ts.createCompilerHost(compilerOptions);
  const readFile = host.readFile.bind(host);
  const fileExists = host.fileExists.bind(host);
  host.readFile = (file) => modules.get(file) ?? readFile(file);
  host.fileExists = (file) => modules.has(file) || fileExists.call(host, file);
  host.getSourceFile = (file, target) => {
    const code = host.readFile(file);
    return code === undefined ? undefined : ts.createSourceFile(file, code, target);
  };
  const program = ts.createProgram([...modules.keys()], compilerOptions, host);
  return [...modules.keys()].flatMap((file) => {
    const source = program.getSourceFile(file);
    assert.ok(source, `${file} is read`);
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map((found) => {
      const { line } = source.getLineAndCharacterOfPosition(found.start ?? 0);
      return `${file.slice(ROOT.length + 1, -3)}:${line + 1}: ${ts.flattenDiagnosticMessageText(found.messageText, ' ')}`;
    });
  });
}

test('the TypeScript of README.md and docs/ compiles', () => {
  const examples = all.filter((document) => blocks(document, 'ts').length > 0);
  assert.ok(examples.length >= 2, `${examples.length} documents have examples`);
  assert.deepEqual(problems(examples), []);
});

test('TypeScript that does not compile is reported with its line', () => {
  const wrong =
    "# Wrong\n\n```ts\nimport { Sendwright } from '@sendwright/client';\nnew Sendwright({ baseUrl: 1, apiKey: '' });\n```\n";
  const [problem, ...more] = problems([{ path: 'docs/wrong.md', text: wrong }]);
  assert.match(problem ?? '', /^docs\/wrong\.md:5: Type 'number' is not assignable to type 'string'/);
  assert.deepEqual(more, []);
});
