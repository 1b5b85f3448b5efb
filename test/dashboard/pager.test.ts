import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pager } from '../../src/dashboard/elements.tsx';
import { readFields } from '../../src/dashboard/forms.ts';
import type { Visit } from '../../src/dashboard/page.ts';

const PATH = '/dashboard/emails';
const LAST = 30;

/** The links of a page in a list, by `rel`; the cursor of page `n` is the position with the id `em_n`. */
function linksOf(url: string, page: number): Record<string, string> {
  const visit = { url, input: readFields(url.split('?')[1] ?? '') } as unknown as Visit;
  const next = page < LAST ? { created_at: '2026-03-01T00:00:00.000Z', id: `em_${page + 1}` } : null;
  const links = [...(Pager({ visit, next }) as string).matchAll(/<a href="([^"]*)" rel="(\w+)"/g)];
  return Object.fromEntries(links.map(([, href = '', rel = '']) => [rel, href.replaceAll('&amp;', '&')]));
}

const cursorOf = (url: string) => new URLSearchParams(url.split('?')[1]).get('cursor');

test('"Newer" opens the page before, as long as it is known, and never jumps to the first page', () => {
  const urls = [PATH];
  for (let page = 0; page < LAST; page++) urls.push(linksOf(urls[page] ?? '', page)['next'] ?? '');
  const [, second = ''] = urls;
  assert.equal(linksOf(second, 1)['prev'], PATH, 'the second page leads to the first one');

  let url = urls[LAST] ?? '';
  let page = LAST;
  for (let prev = linksOf(url, page)['prev']; prev !== undefined; prev = linksOf(url, page)['prev']) {
    url = prev;
    page -= 1;
    assert.equal(cursorOf(url), cursorOf(urls[page] ?? ''), `page ${page}`);
  }
  assert.ok(page > 0 && page < LAST - 10, `the links end at page ${page}`);
  assert.ok(url.length < 4_000, 'a link stays short');
});
