import MiniSearch, { type Options, type SearchOptions } from 'minisearch';

/** A section of a page. */
export interface Section {
  /** Its URL path: `/docs/sending#attachments`. */
  readonly id: string;
  readonly title: string;
  /** The title of its page. */
  readonly page: string;
  readonly text: string;
  /** The beginning of its text, shown with a result. */
  readonly excerpt: string;
}

export type Result = Pick<Section, 'id' | 'title' | 'page' | 'excerpt'>;

const MAX_RESULTS = 20;
/** Maximum number of characters of a query; the rest is ignored. */
const MAX_QUERY_LENGTH = 200;
/** Maximum number of words of a query; the rest is ignored. Searching blocks other requests for about half a millisecond per word. */
const MAX_WORDS = 8;
/**
 * Words that a query is searched without, unless it consists of them. Questions contain them, sections about the answer often do not.
 * "from" is not among them: it is a field of most requests.
 */
const STOP_WORDS = (
  'a am an and are as at be by can could do does for get has have how i if in into is it its me my of on or our set should so ' +
  'that the their there these this to up want was we what when where which who why will with would you your'
).split(' ');

/** `assets/docs.js` loads the index in browsers with the same options, from `/docs/assets/…/search.json`. */
const SEARCH: SearchOptions = {
  boost: { title: 6, page: 2 },
  prefix: true,
  fuzzy: 0.15,
  combineWith: 'AND',
};
const INDEX: Options<Section> = {
  fields: ['title', 'page', 'text'],
  storeFields: ['title', 'page', 'excerpt'],
};

/** @returns the index as JSON, with its options for browsers */
export function indexSections(sections: readonly Section[]): string {
  const index = new MiniSearch(INDEX);
  index.addAll(sections);
  return JSON.stringify({ options: INDEX, search: SEARCH, stopWords: STOP_WORDS, maxResults: MAX_RESULTS, index });
}

/**
 * Searches for sections that contain all words of a query, or some of them if none contains all. Words of one letter are ignored:
 * they begin a large share of all words, and anyone can search.
 */
export function makeSearch(json: string): (query: string) => Result[] {
  const { index } = JSON.parse(json) as { index: Parameters<typeof MiniSearch.loadJS>[0] };
  const loaded = MiniSearch.loadJS<Section>(index, INDEX);
  return (query) => {
    const words = wordsOf(query).join(' ');
    const all = loaded.search(words, SEARCH);
    const found = all.length > 0 ? all : loaded.search(words, { ...SEARCH, combineWith: 'OR' });
    return found.slice(0, MAX_RESULTS) as unknown as Result[];
  };
}

/** Splits a query as MiniSearch does. `assets/docs.js` omits the same stop words, but no short ones, and limits no lengths. */
function wordsOf(query: string): string[] {
  const words = query.slice(0, MAX_QUERY_LENGTH).split(/[\n\r\p{Z}\p{P}]+/u);
  const long = words.filter((word) => word.length > 1);
  const searched = long.filter((word) => !STOP_WORDS.includes(word.toLowerCase()));
  return [...new Set(searched.length > 0 ? searched : long)].slice(0, MAX_WORDS);
}
