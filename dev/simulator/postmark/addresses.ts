/** An address as Postmark's search returns it. */
export interface Recipient {
  readonly Email: string;
  readonly Name: string;
}

/**
 * The two expressions that Postmark publishes for its check, https://postmarkapp.com/support/article/1180: the local part
 * is ASCII and may not hold a question mark, and its dots are neither at its ends nor adjacent.
 */
const LOCAL_PART = /^[a-z0-9!#$%&'`*+\-/=^_{}|~]+(?:\.[a-z0-9!#$%&'`*+\-/=^_{}|~]+)*$/i;
const DOMAIN = /^\.?[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i;
/** What a display name may hold only within double quotes. */
// eslint-disable-next-line no-control-regex -- no name may break its line
const NAME_SPECIALS = /[()<>[\]:;@\\,"\u0000-\u001F\u007F]/;
// eslint-disable-next-line no-control-regex -- as above
const QUOTED_NAME = /^"((?:[^"\\\u0000-\u001F\u007F]|\\[^\u0000-\u001F\u007F])*)"$/u;

/** Splits a list of addresses at commas outside of quotes. */
export function splitAddresses(list: string): string[] {
  const parts: string[] = [];
  let quoted = false;
  let start = 0;
  for (let i = 0; i <= list.length; i++) {
    const character = list[i];
    if (character === '"') quoted = !quoted;
    else if (character === '\\' && quoted) i++;
    else if (i >= list.length || (character === ',' && !quoted)) {
      parts.push(list.slice(start, i).trim());
      start = i + 1;
    }
  }
  return parts.filter((part) => part !== '');
}

/** Parses `a@b.com`, `Name <a@b.com>` or `"Name, with punctuation" <a@b.com>`; returns undefined if Postmark refuses it. */
export function parseAddress(text: string): Recipient | undefined {
  const bracket = text.endsWith('>') ? text.lastIndexOf('<') : -1;
  const name = bracket < 0 ? '' : parseName(text.slice(0, bracket).trim());
  const email = bracket < 0 ? text : text.slice(bracket + 1, -1).trim();
  const at = email.lastIndexOf('@');
  const known = LOCAL_PART.test(email.slice(0, Math.max(at, 0))) && DOMAIN.test(email.slice(at + 1));
  return known && name !== undefined ? { Email: email, Name: name } : undefined;
}

function parseName(text: string): string | undefined {
  if (!NAME_SPECIALS.test(text)) return text;
  return QUOTED_NAME.exec(text)?.[1]?.replace(/\\(.)/gu, '$1');
}
