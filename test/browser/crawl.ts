import type { Page } from 'playwright-core';
import { PAGES } from '../../src/dashboard/app.ts';

/** Paths of the route table that somebody can open, `:name` included. */
export const PATTERNS: readonly string[] = PAGES.filter(([method]) => method === 'GET').map(([, path]) => path);

/** The row of the route table that an address belongs to; fixed paths come before those with parameters. */
export function patternOf(path: string): string | undefined {
  const isOf = (pattern: string) => new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+')}$`).test(path);
  return PATTERNS.find((pattern) => pattern === path) ?? PATTERNS.find(isOf);
}

/**
 * One address for each pattern of the route table, found as people find them: by the links of the pages, from the overview
 * on. Frames count as links; what links lead to is not always a page.
 */
export async function findPages(page: Page, base: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>([['/dashboard', '/dashboard']]);
  for (const path of found.values()) {
    const response = await page.request.get(base + path);
    if (!(response.headers()['content-type'] ?? '').startsWith('text/html')) continue;
    // Not opened: a page that renews itself would go on while it is read.
    const html = await response.text();
    for (const [, link = ''] of html.matchAll(/(?:href|src)="(\/dashboard[^"#]*)"/g)) {
      const address = link.replaceAll('&amp;', '&');
      const pattern = patternOf(address.split('?')[0] ?? '');
      if (pattern !== undefined && !found.has(pattern)) found.set(pattern, address);
    }
  }
  return found;
}
