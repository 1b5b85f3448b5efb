import { type Row, sendTable } from './send-table.ts';

type Fields = Record<string, unknown>;

/** Every place of an email that may become a header, or part of one, with the param of its refusal. */
const PLACES: readonly (readonly [param: string, put: (text: string, domain: string) => Fields])[] = [
  ['subject', (text) => ({ subject: `a${text}b` })],
  ['subject', (text) => ({ subject: `a${text}` })],
  ['from', (text, domain) => ({ from: `A${text}da <a@${domain}>` })],
  ['from', (text, domain) => ({ from: `"A${text}da" <a@${domain}>` })],
  ['from', (text, domain) => ({ from: `a@${domain}${text}` })],
  ['from', (text, domain) => ({ from: `${text}a@${domain}` })],
  ['from', (text, domain) => ({ from: `a${text}@${domain}` })],
  ['from', (text, domain) => ({ from: `a@${domain.replace('.', `${text}.`)}` })],
  ...['to', 'cc', 'bcc', 'reply_to'].flatMap((field): [string, (text: string) => Fields][] => [
    [field, (text) => ({ [field]: `A${text}da <a@example.net>` })],
    [field, (text) => ({ [field]: `a${text}@example.net` })],
    [field, (text) => ({ [field]: `a@example.net${text}` })],
    [`${field}.1`, (text) => ({ [field]: ['b@example.net', `a@exam${text}ple.net`] })],
  ]),
  ['tags.0.name', (text) => ({ tags: [{ name: `a${text}`, value: 'b' }] })],
  ['tags.0.value', (text) => ({ tags: [{ name: 'a', value: `b${text}` }] })],
  ['headers.X-A', (text) => ({ headers: { 'X-A': `a${text}b` } })],
  ['headers.X-A', (text) => ({ headers: { 'X-A': text } })],
];

/** What is refused in all of them, by the words in which a case names it. */
const REFUSED: Readonly<Record<string, string>> = {
  'CR LF': '\r\n',
  'CR LF and a header': '\r\nBcc: eve@example.net',
  CR: '\r',
  LF: '\n',
  NUL: '\0',
  TAB: '\t',
  ESC: '\x1B',
  'unit separator': '\x1F',
  DEL: '\x7F',
  'U+2028': '\u2028',
  'U+2029': '\u2029',
  'a lone high surrogate': '\uD83D',
  'a lone low surrogate': '\uDE00',
};

function everywhere(text: string): Row[] {
  return PLACES.map(([param, put]) => [
    `${param}: ${JSON.stringify(put('…', 'example.com'))}`,
    ({ domain }) => put(text, domain),
    [param, 'm'],
  ]);
}

const text = (value: string): Fields => ({ html: value, text: value });

sendTable({
  ...Object.fromEntries(Object.entries(REFUSED).map(([name, value]) => [`${name} is refused`, everywhere(value)])),
  'control characters are refused in header names': Object.entries(REFUSED).map(([name, value]): Row => [
    name,
    { headers: { [`X-A${value}`]: 'x' } },
    [`headers.X-A${value}`, 'must be named in printable ASCII'],
  ]),
  'in bodies only NUL and lone surrogates are refused': [
    ['NUL in html', { html: 'a\0b' }, ['html', 'must not hold NUL characters']],
    ['NUL in text', { text: 'a\0b' }, ['text', 'must not hold NUL characters']],
    ['a lone surrogate in html', { html: 'a\uD83Db' }, ['html', 'must be well-formed Unicode']],
    ['a lone surrogate in text', { text: 'a\uDE00' }, ['text', 'must be well-formed Unicode']],
    ['line breaks', text('a\r\nb\nc\rd')],
    ['tabs and other controls', text('\t\x01\x1B\x7F\u0085')],
    ['separators of Unicode', text('\u2028\u2029')],
    ['pairs of surrogates', text('😀')],
    ['a byte order mark, zero-width and bidi characters', text('\uFEFF\u200B\u202E')],
    ['non-characters', text('\uFFFE\uFFFF')],
  ],
  'hostile text is only text': [
    "' OR 1=1 --",
    '\\u0000',
    '<script>alert(1)</script>',
    '${jndi:ldap://x}',
    '%s%n%00',
    '{{7*7}}',
    '{{{unsubscribe_url}}}',
    '=?utf-8?q?x?=',
    '$1',
    'NULL',
    '\\',
    '"',
    '😀',
  ].map((value): Row => [value, { subject: value, html: value, text: value, headers: { 'X-A': value } }]),
});
