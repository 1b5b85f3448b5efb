import { type Row, sendTable } from './send-table.ts';

/** Values of every JSON type. */
const VALUES: Readonly<Record<string, unknown>> = {
  null: null,
  true: true,
  'a number': 5,
  'a string': 'x',
  'an array': ['x'],
  'an object': { x: 'x' },
};

/** A field with values of every type but those that it takes. */
function wrongTypes(field: string, message: string, takes: readonly string[]): Row[] {
  return Object.entries(VALUES)
    .filter(([name]) => !takes.includes(name))
    .map(([name, value]) => [`${field} is ${name}`, { [field]: value }, [field, message]]);
}

const STRINGS = 'must be a string';
const ADDRESSES = 'must be a string or an array';
const ADDRESS = 'must be local@domain or Name <local@domain>';
const UNKNOWN = 'is not a known field';
const CONTROL = 'must not contain control characters';
const TAG = { name: 'a', value: 'b' };

const optional = ['cc', 'bcc', 'reply_to', 'marketing', 'tags', 'headers', 'scheduled_at', 'html'];
const text = (value: string) => ({ html: value, text: value });

await sendTable({
  'required fields': [
    ['from is left out', { from: undefined }, ['from', 'is required']],
    ['to is left out', { to: undefined }, ['to', 'is required']],
    ['subject is left out', { subject: undefined }, ['subject', 'is required']],
    ['html and text are left out', { text: undefined }, ['html', 'is required unless text is given']],
    ['html and text are null', { html: null, text: null }, ['html', 'is required unless text is given']],
  ],
  'an optional field may be left out or null': [
    ['all optional fields are left out', {}],
    ...optional.map((field): Row => [`${field} is null`, { [field]: null }]),
    ['text is null, html is given', { html: '<p>Hi', text: null }],
  ],
  'from: string': wrongTypes('from', STRINGS, ['a string']),
  'to: string or string[]': wrongTypes('to', ADDRESSES, ['a string', 'an array']),
  'cc: string or string[]': wrongTypes('cc', ADDRESSES, ['null', 'a string', 'an array']),
  'bcc: string or string[]': wrongTypes('bcc', ADDRESSES, ['null', 'a string', 'an array']),
  'reply_to: string or string[]': wrongTypes('reply_to', ADDRESSES, ['null', 'a string', 'an array']),
  'subject: string': wrongTypes('subject', STRINGS, ['a string']),
  'html: string': wrongTypes('html', STRINGS, ['null', 'a string']),
  'text: string': wrongTypes('text', STRINGS, ['null', 'a string']),
  'marketing: boolean': wrongTypes('marketing', 'must be true or false', ['null', 'true']),
  'tags: array of {name, value}': wrongTypes('tags', 'must be an array', ['null', 'an array']),
  'headers: object': wrongTypes('headers', 'must be an object', ['null', 'an object']),
  'scheduled_at: string': wrongTypes('scheduled_at', STRINGS, ['null', 'a string']),

  'an address in an array is a string, and param names the very one at fault': ['to', 'cc', 'bcc', 'reply_to'].flatMap(
    (field): Row[] => [
      [`${field}.0 is a number`, { [field]: [5] }, [`${field}.0`, STRINGS]],
      [`${field}.0 is an array`, { [field]: [['a@example.net']] }, [`${field}.0`, STRINGS]],
      [`${field}.1 is no address`, { [field]: ['a@example.net', 'unknown'] }, [`${field}.1`, ADDRESS]],
      [`${field} is no address`, { [field]: 'unknown' }, [field, ADDRESS]],
      [`${field} is one address`, { [field]: 'Ada <a@example.net>' }],
    ],
  ),
  'parts of tags and headers': [
    ['a tag is a string', { tags: ['a:b'] }, ['tags.0', 'must be an object']],
    ['the name of a tag is left out', { tags: [{ value: 'b' }] }, ['tags.0.name', 'is required']],
    ['the name of a tag is a number', { tags: [{ name: 5, value: 'b' }] }, ['tags.0.name', STRINGS]],
    ['the value of a tag is null', { tags: [{ name: 'a', value: null }] }, ['tags.0.value', STRINGS]],
    ['the value of a header is null', { headers: { 'X-A': null } }, ['headers.X-A', STRINGS]],
    ['the value of a header is true', { headers: { 'X-B': 'b', 'X-A': true } }, ['headers.X-A', STRINGS]],
    ['the name of a header looks like a path', { headers: { 'a/b~c.d': 5 } }, ['headers.a/b~c.d', STRINGS]],
    ['the value of a header is empty', { headers: { 'X-A': '' } }],
  ],
  'unknown body fields are refused with 422 that names them': [
    ['in the email', { reply: 'a@example.net' }, ['reply', UNKNOWN]],
    ['in another case', { Subject: 'x' }, ['Subject', UNKNOWN]],
    ['in a tag', { tags: [TAG, { name: 'b', value: 'c', x: 1 }] }, ['tags.1.x', UNKNOWN]],
    ['named like a member of objects', { toString: 1 }, ['toString', UNKNOWN]],
    ['too long to be repeated', { ['x'.repeat(100_000)]: 1 }, ['x'.repeat(200), UNKNOWN]],
  ],
  // test/security/fuzz-routes.test.ts puts every control character into every field; here each field is refused once.
  'line breaks and control characters are refused in every field that becomes a header': [
    ['subject', { subject: 'a\r\nBcc: eve@example.net' }, ['subject', CONTROL]],
    ['from', ({ domain }) => ({ from: `A\r\nda <a@${domain}>` }), ['from', CONTROL]],
    ['to', { to: 'A\nda <a@example.net>' }, ['to', CONTROL]],
    ['cc', { cc: ['b@example.net', 'a@exam\0ple.net'] }, ['cc.1', CONTROL]],
    ['bcc', { bcc: 'a@example.net\x7F' }, ['bcc', CONTROL]],
    ['reply_to', { reply_to: '\u2028a@example.net' }, ['reply_to', CONTROL]],
    ['the value of a header', { headers: { 'X-A': 'a\tb' } }, ['headers.X-A', CONTROL]],
    ['the name of a header', { headers: { 'X-A\r\n': 'x' } }, ['headers.X-A\r\n', 'must be named in printable ASCII']],
    ['a lone surrogate', { subject: 'a\uD83D' }, ['subject', 'must be well-formed Unicode']],
  ],
  'in bodies only NUL and lone surrogates are refused': [
    ['NUL in html', { html: 'a\0b' }, ['html', 'must not contain NUL characters']],
    ['NUL in text', { text: 'a\0b' }, ['text', 'must not contain NUL characters']],
    ['a lone surrogate in html', { html: 'a\uD83Db' }, ['html', 'must be well-formed Unicode']],
    ['a lone surrogate in text', { text: 'a\uDE00' }, ['text', 'must be well-formed Unicode']],
    ['line breaks, tabs and other controls', text('a\r\nb\nc\rd\t\x01\x1B\x7F\u0085')],
  ],
});
