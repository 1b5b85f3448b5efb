import { PAGES } from '../../src/dashboard/app.ts';
import type { Visitor } from './visitor.ts';

/** Paths of the route table that somebody can open, `:name` included. */
export const PATTERNS: readonly string[] = PAGES.filter(([method]) => method === 'GET').map(([, path]) => path);

/** The row of the route table that an address belongs to; fixed paths come before those with parameters. */
export function patternOf(path: string): string | undefined {
  const isOf = (pattern: string) => new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+')}$`).test(path);
  return PATTERNS.find((pattern) => pattern === path) ?? PATTERNS.find(isOf);
}

/** What somebody finds at an address. */
export interface FoundPage {
  readonly path: string;
  /** Whether it is a page as a whole, with the navigation: no file, and no part or frame of another page. */
  readonly isWhole: boolean;
}

/**
 * One address for each pattern of the route table, found as people find them: by the links of the pages, from the overview
 * on. What a page shows in a frame or renews counts as linked.
 */
export async function findPages({ get }: Pick<Visitor, 'get'>): Promise<ReadonlyMap<string, FoundPage>> {
  const addresses = new Map<string, string>([['/dashboard', '/dashboard']]);
  const found = new Map<string, FoundPage>();
  for (const [pattern, path] of addresses) {
    const { html } = await get(path);
    found.set(pattern, { path, isWhole: html.includes('<nav class="main"') });
    for (const [, link = ''] of html.matchAll(/(?:href|src|hx-get)="(\/dashboard[^"#]*)"/g)) {
      const address = link.replaceAll('&amp;', '&');
      const linked = patternOf(address.split('?')[0] ?? '');
      if (linked !== undefined && !addresses.has(linked)) addresses.set(linked, address);
    }
  }
  return found;
}
