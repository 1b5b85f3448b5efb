import fc from 'fast-check';

/** Texts that parsers, databases, shells, headers or logs may misinterpret, and texts beyond each limit. */
const TEXTS = [
  ...['', ' ', '\0', 'a\0b', '\t', '\r\n', 'a\r\nBcc: eve@evil.example', '\u2028', '\uFEFF', '\u202E', '\u200B', '😀'],
  ...'__proto__ constructor prototype toString hasOwnProperty null undefined NaN true [] {}'.split(' '),
  ...["'", '"', '\\', '`', "' OR '1'='1", "'; DROP TABLE emails; --", '%00', '%', '%s%n', '$1', '${7*7}', '{{7*7}}'],
  ...'../ ..\\ <script>alert(1)</script> <!-- ]]> javascript:alert(1) file:///etc/passwd //evil.example'.split(' '),
  ...'http://[::1]/ -1 0 1 1.5 1e309 0x10 9007199254740993 99999999999999999999 -0 1;1 １ ٣ ﷺ İ ß é'.split(' '),
  ...'a@b.example a@b@c.example @ a@ <a@b.example> +14165550123 +0 + 2026-03-01T00:00:00Z'.split(' '),
  ...'9999-12-31T23:59:59Z +275760-09-13T00:00:00Z 0000-00-00 2026-02-30T00:00:00Z P1D now'.split(' '),
  ...[' 1', 'a'.repeat(257), 'a'.repeat(999), '😀'.repeat(300), 'a.'.repeat(200), 'ab'.repeat(5_000)],
];

/** Postgres and UTF-8 cannot represent these; they are refused in every field. */
export const REFUSED_EVERYWHERE = ['\0', '\uD83D', '\uDE00'];
/** Refused in fields of one line. Not imported from the domain, so that it is checked. */
export const REFUSED_IN_LINES = ['\t', '\n', '\r\nBcc: eve@evil.example', '\x1B[31m', '\x7F', '\u2028', '\u2029'];
/** Accepted or refused, without an error. */
export const UNUSUAL = ['\u202E', '\u200B', '\uFEFF', '\u0085', '\uFFFE', '😀', '%00', '=?utf-8?q?x?='];
/** Longer than any field but a file may be. */
export const OVERLONG = 'a'.repeat(1_000_001);

/** Any text, including lone surrogates. */
export const hostileText = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...TEXTS) },
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
);

/** Any JSON value. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: hostileText },
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1, 1.5, 1e308, 9_007_199_254_740_991, [], {}, [[]], [null], ['']),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.array(hostileText, { maxLength: 3 }),
  fc.dictionary(hostileText, hostileText, { maxKeys: 3 }),
  fc.jsonValue({ maxDepth: 3 }),
);

type Edit = readonly [what: 'replace' | 'remove' | 'add' | 'repeat', at: number, key: string, value: unknown];

const EDIT: fc.Arbitrary<Edit> = fc.tuple(
  fc.constantFrom('replace', 'replace', 'replace', 'remove', 'add', 'repeat'),
  fc.nat(),
  hostileText,
  hostileValue,
);

/** Up to three changes to any JSON value. */
export const hostileEdits = fc.array(EDIT, { maxLength: 3 });

/** A copy of a value with changes at random places in it. */
export function edited(value: unknown, edits: readonly Edit[]): unknown {
  let result = structuredClone(value);
  for (const [what, at, key, given] of edits) {
    const by = structuredClone(given);
    const places = placesIn(result);
    const [holder, name] = places[at % places.length] ?? [];
    if (holder === undefined || name === undefined) {
      result = by;
      continue;
    }
    const before = holder[name];
    if (what === 'remove') remove(holder, name);
    else if (what === 'add' && Array.isArray(before)) before.push(by);
    else if (what === 'add' && isObject(before)) set(before, key, by);
    else if (what === 'repeat') set(holder, name, [before, before]);
    else set(holder, name, by);
  }
  return result;
}

type Holder = Record<string, unknown>;

function isObject(value: unknown): value is Holder {
  return typeof value === 'object' && value !== null;
}

function remove(holder: Holder, name: string): void {
  if (Array.isArray(holder)) holder.splice(Number(name), 1);
  else Reflect.deleteProperty(holder, name);
}

/** As JSON.parse does: a key `__proto__` is a key like any other. */
function set(holder: Holder, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Every place of a value, by its object and key. The first is the value itself, which has neither. */
function placesIn(value: unknown): [holder?: Holder, key?: string][] {
  if (!isObject(value)) return [[]];
  const inside = Object.keys(value).flatMap((key): [Holder, string][] => {
    const below = placesIn(value[key]).slice(1) as [Holder, string][];
    return [[value, key], ...below];
  });
  return [[], ...inside];
}

/** A text within a JSON value. */
interface Place {
  /** Its dotted path. */
  readonly at: string;
  readonly value: string;
  /** A copy of the whole value with another text at this place. */
  readonly put: (text: unknown) => unknown;
}

/** Every text of a value, and the names of headers, which callers choose too. */
export function textsOf(value: unknown, at: readonly string[] = [], put: Place['put'] = (text) => text): Place[] {
  if (typeof value === 'string') return [{ at: at.join('.'), value, put }];
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]): Place[] => {
    const name = { at: at.join('.'), value: key, put: (text: unknown) => put({ [String(text)]: inner }) };
    const within = textsOf(inner, [...at, key], (changed) =>
      put(Array.isArray(value) ? value.with(Number(key), changed) : { ...value, [key]: changed }),
    );
    return at.at(-1) === 'headers' ? [name, ...within] : within;
  });
}
