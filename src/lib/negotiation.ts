import Negotiator from 'negotiator';

type HeaderName = 'accept' | 'accept-encoding' | 'accept-language';

interface Requested {
  readonly headers: { readonly [Name in HeaderName]?: string | undefined };
}

/** Browsers send about 150 characters. Parsing the longest header that Node accepts would take milliseconds. */
const MAX_HEADER_LENGTH = 1_000;

/** Returns true for browsers, which list HTML in Accept; other clients accept anything and do not list it. */
export function acceptsHtml(request: Requested): boolean {
  return negotiate(request, 'accept').mediaType(['application/json', 'text/html']) === 'text/html';
}

export function acceptsGzip(request: Requested): boolean {
  return negotiate(request, 'accept-encoding').encoding(['gzip']) === 'gzip';
}

/** Returns the accepted language with the highest preference: the first one if any is accepted, undefined if none is. */
export function acceptedLanguage<T extends string>(request: Requested, languages: T[]): T | undefined {
  return negotiate(request, 'accept-language').language(languages) as T | undefined;
}

/** A header that is too long counts as missing. */
function negotiate({ headers }: Requested, name: HeaderName): Negotiator {
  const value = headers[name];
  return new Negotiator({ headers: value === undefined || value.length > MAX_HEADER_LENGTH ? {} : { [name]: value } });
}
