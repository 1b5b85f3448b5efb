import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { describeApi } from '../../dev/build/api-description.ts';
import { ERROR_CODES } from '../../src/domain/errors.ts';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';
import { NAVIGATION } from '../../src/site/navigation.ts';
import { endpointsOf, type Description } from '../../src/site/render/description.ts';
import { renderSite } from '../../src/site/render/site.ts';
import { makeSearch } from '../../src/site/search.ts';

const api = (await describeApi()) as Description;
const files = new Map([...(await renderSite(api))].map(([path, content]) => [path, content.toString()]));
const pages = [...files].filter(([, text]) => text.startsWith('<!doctype html>'));
/** Files besides a page and its pictures that a browser loads with it. */
const LOADED = /(?:href|src)="(\/docs\/assets\/[^"]+)"/g;
const MAX_COMPRESSED_BYTES = 100_000;

const unescape = (text: string) => text.replaceAll('&#39;', "'").replaceAll('&quot;', '"').replaceAll('&amp;', '&');

test('every document is in the navigation, and no other', async () => {
  const names = (await readdir('docs')).filter((name) => name.endsWith('.md')).map((name) => name.slice(0, -3));
  const listed = NAVIGATION.flatMap((group) => group.pages.map(({ name }) => name));
  assert.deepEqual(
    listed.filter((name) => name !== 'api').sort(),
    names.sort(),
    'list new documents in src/site/navigation.ts',
  );
});

test('every document is a page with its title, its headings and a link to its source', () => {
  for (const { name } of NAVIGATION.flatMap((group) => group.pages)) {
    if (name === 'api') continue;
    const source = files.get(`/docs/${name}.md`) ?? '';
    const page = files.get(`/docs/${name}`) ?? '';
    const [, title = ''] = /^# (.+)$/m.exec(source) ?? [];
    assert.notEqual(title, '', `docs/${name}.md begins with a title`);
    assert.ok(unescape(page).includes(`<title>${title.replaceAll('`', '')} · Sendwright documentation</title>`), name);
    const headings = source.replaceAll(/^```[\s\S]*?^```$/gm, '').match(/^## /gm) ?? [];
    assert.equal(page.match(/<h2 id=/g)?.length ?? 0, headings.length, name);
    assert.ok(page.includes(`href="/docs/${name}.md"`), name);
  }
});

test('every error code is an anchor of its page, to which errors link', () => {
  const page = files.get('/docs/errors') ?? '';
  for (const code of ERROR_CODES) assert.ok(page.includes(`<tr id="${code}">`), code);
});

test('every link and picture leads somewhere, and every anchor exists', () => {
  const broken: string[] = [];
  const others = ['/dashboard', '/openapi.json'];
  for (const [path, text] of pages) {
    const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(({ 1: id = '' }) => id);
    assert.equal(new Set(ids).size, ids.length, `an id occurs twice on ${path}`);
    for (const [, link = ''] of text.matchAll(/ (?:href|src|action)="([^"]+)"/g)) {
      if (/^(?:https?|mailto):/.test(link) || others.includes(link)) continue;
      const [target = '', anchor] = unescape(link).split('#');
      const to = files.get(target === '' ? path : target);
      if (to === undefined || (anchor !== undefined && !to.includes(` id="${anchor}"`)))
        broken.push(`${path}: ${link}`);
    }
  }
  assert.ok(pages.length >= 25, `${pages.length} pages`);
  assert.deepEqual(broken, []);
});

test('the reference has every operation with its fields, and a request in each language', () => {
  const reference = pages.filter(([path]) => path.startsWith('/docs/api/'));
  for (const { operationId, summary, method, path, parameters = [], requestBody } of endpointsOf(api)) {
    const [, page = ''] = reference.find(([, text]) => text.includes(` id="${operationId}"`)) ?? [];
    const [, section = ''] = page.split(`id="${operationId}"`);
    const [own = ''] = section.split('<section');
    const operation = unescape(own.replaceAll(/<[^>]+>/g, ''));
    assert.ok(operation.includes(summary) && operation.includes(`${method} ${path}`), operationId);
    for (const language of ['curl', 'nodejs', 'python', 'php', 'ruby', 'go']) {
      assert.ok(own.includes(` data-language="${language}"`), `${operationId} in ${language}`);
    }
    const example = requestBody?.content['application/json']?.example;
    for (const name of [...parameters.map((parameter) => parameter.name), ...Object.keys(example ?? {})]) {
      assert.match(own, new RegExp(`<dt><code>${name}</code>`), operationId);
    }
  }
});

test('the reference has a payload of every event type, and an anchor for each', () => {
  const page = unescape((files.get('/docs/api/events') ?? '').replaceAll(/<\/?span[^>]*>/g, ''));
  for (const type of EVENT_TYPES) {
    assert.ok(page.includes(`id="${type}"`), type);
    assert.ok(page.includes(`"type": "${type}"`), type);
  }
});

test('the search finds what people type', () => {
  const index = [...files].find(([path]) => path.endsWith('/search.json'))?.[1] ?? '';
  const search = makeSearch(index);
  const expected: Readonly<Record<string, string>> = {
    idempotency: '/docs/sending#',
    schedule: '/docs/sending#',
    batch: '/docs/sending#',
    attachments: '/docs/sending#',
    'suppression list': '/docs/statuses#suppression-list',
    'List-Unsubscribe': '/docs/sending#',
    'rate limits': '/docs/sending#',
    'verify signature': '/docs/',
    'event types': '/docs/webhooks#event-types',
    retries: '/docs/webhooks#',
    'environment variables': '/docs/settings',
    'migrate from Resend': '/docs/moving',
    'backup restore': '/docs/maintenance#',
    'send an email': '/docs/api/emails#sendEmail',
    attachmnets: '/docs/sending#attachments',
  };
  for (const [query, start] of Object.entries(expected)) {
    const found = search(query).slice(0, 5);
    assert.ok(
      found.some(({ id }) => id.startsWith(start)),
      `${query}: ${found.map(({ id }) => id).join(', ')}`,
    );
  }
  assert.deepEqual(search('xylophone zzzz'), []);
});

test('the search answers questions, whose first words are in few sections', () => {
  const index = [...files].find(([path]) => path.endsWith('/search.json'))?.[1] ?? '';
  const search = makeSearch(index);
  const expected: Readonly<Record<string, string>> = {
    'How to verify a domain?': '/docs/api/domains#verifyDomain',
    'how do I add an attachment': '/docs/sending#attachments',
    'how to set up webhooks': '/docs/webhooks',
    'What is the rate limit?': '/docs/sending#rate-limits',
    'how can I cancel a scheduled email': '/docs/api/emails#cancelEmail',
    'how do I deploy this': '/docs/operating#deploy-to-production',
  };
  for (const [question, path] of Object.entries(expected)) assert.equal(search(question)[0]?.id, path, question);
  assert.ok(search('to').length > 0, 'a query of such words alone is searched for them');
});

test('the search reads eight different words, none of one letter, so that a query is cheap', () => {
  const index = [...files].find(([path]) => path.endsWith('/search.json'))?.[1] ?? '';
  const search = makeSearch(index);
  const words = 'send email with attachments to a list of recipients, one batch per day, and cancel later';
  const first = search('send email attachments list recipients one batch per');
  assert.ok(first.length > 0);
  assert.deepEqual(search(words), first);
  assert.deepEqual(search(`send send ${words}`), first);
  assert.deepEqual(search('s e n d'), []);
});

test('llms.txt lists every page with a description, as Markdown', () => {
  const text = files.get('/llms.txt') ?? '';
  assert.equal(files.get('/docs/llms.txt'), text);
  const listed = [...text.matchAll(/^- \[.+?\]\((\S+)\): \S.+$/gm)].map(({ 1: path = '' }) => path);
  const sources = [...files.keys()].filter((path) => path.endsWith('.md'));
  assert.deepEqual(listed.sort(), sources.sort());
});

test('a page with everything it loads stays under 100 kB compressed', () => {
  for (const [path, text] of pages) {
    const loaded = new Set([...text.matchAll(LOADED)].map(({ 1: asset = '' }) => asset));
    const sizes = [text, ...[...loaded].map((asset) => files.get(asset) ?? '')].map((body) => gzipSync(body).length);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(loaded.size >= 4 && total < MAX_COMPRESSED_BYTES, `${path} has ${total} bytes`);
  }
});

test('no page contains inline scripts, inline styles or handlers', () => {
  for (const [path, text] of pages) {
    assert.doesNotMatch(text, /<script(?![^>]* src=)|<style|<[^>]+ style="|<[a-z][^>]* on[a-z]+="/, path);
  }
});
