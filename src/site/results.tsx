import { escapeHtml } from '../lib/html.ts';
import type { Result } from './search.ts';

/** The results of a search, for browsers without JavaScript and for links to a search. */
export function renderResults(query: string, results: readonly Result[]): string {
  return (
    <>
      <form action="/docs/search" class="search">
        <label>
          <span>Search for</span>
          <input type="search" name="q" value={escapeHtml(query)} required />
        </label>
        <button>Search</button>
      </form>
      {query.trim() !== '' && (
        <p role="status" safe>
          {results.length === 0 ? `Nothing matches “${query}”.` : `Results for “${query}”`}
        </p>
      )}
      {results.length > 0 && (
        <ul class="index">
          {results.map(({ id, title, page, excerpt }) => (
            <li>
              <a href={id} safe>
                {title}
              </a>
              <small safe>{page}</small>
              <span safe>{excerpt}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  ) as string;
}
