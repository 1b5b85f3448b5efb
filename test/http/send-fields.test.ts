import { type Row, sendTable } from './send-table.ts';

/** Values of every JSON type, by the words in which a case names them. */
const VALUES: Readonly<Record<string, unknown>> = {
  null: null,
  true: true,
  'a number': 5,
  'a string': 'x',
  'an array': ['x'],
  'an array in an array': [['x']],
  'an array of an object': [{ x: 'x' }],
  'an array of null': [null],
  'an object': { x: 'x' },
  'an object of a number': { x: 5 },
};

/** One field with values of every type but those that it takes. */
function wrongTypes(field: string, says: string, takes: readonly string[]): Row[] {
  return Object.entries(VALUES)
    .filter(([name]) => !takes.includes(name))
    .map(([name, value]) => [`${field} is ${name}`, { [field]: value }, [field, says]]);
}

const arrays = ['an array', 'an array in an array', 'an array of an object', 'an array of null'];
const objects = ['an object', 'an object of a number'];
const orNull = (...takes: string[]) => ['null', ...takes];
const STRINGS = 'must be a string';
const ADDRESSES = 'must be a string or an array';
const ADDRESS = 'must be local@domain or Name <local@domain>';
const TAG = { name: 'a', value: 'b' };

const optional = ['cc', 'bcc', 'reply_to', 'marketing', 'tags', 'headers', 'scheduled_at'];

sendTable({
  'required fields': [
    ['from is left out', { from: undefined }, ['from', 'is required']],
    ['to is left out', { to: undefined }, ['to', 'is required']],
    ['subject is left out', { subject: undefined }, ['subject', 'is required']],
    ['html and text are left out', { text: undefined }, ['html', 'is required unless text is given']],
    ['html and text are null', { html: null, text: null }, ['html', 'is required unless text is given']],
  ],
  'an optional field may be left out or null': [
    ['all optional fields are left out', {}],
    ['all optional fields are null', Object.fromEntries([...optional, 'html'].map((field) => [field, null]))],
    ...optional.map((field): Row => [`${field} is null`, { [field]: null }]),
    ['html is null, text is given', { html: null }],
    ['text is null, html is given', { html: '<p>Hi', text: null }],
  ],
  'from: string': wrongTypes('from', STRINGS, ['a string']),
  'to: string or string[]': wrongTypes('to', ADDRESSES, ['a string', ...arrays]),
  'cc: string or string[]': wrongTypes('cc', ADDRESSES, orNull('a string', ...arrays)),
  'bcc: string or string[]': wrongTypes('bcc', ADDRESSES, orNull('a string', ...arrays)),
  'reply_to: string or string[]': wrongTypes('reply_to', ADDRESSES, orNull('a string', ...arrays)),
  'subject: string': wrongTypes('subject', STRINGS, ['a string']),
  'html: string': wrongTypes('html', STRINGS, orNull('a string')),
  'text: string': wrongTypes('text', STRINGS, orNull('a string')),
  'marketing: boolean': wrongTypes('marketing', 'must be true or false', orNull('true')),
  'tags: array of {name, value}': wrongTypes('tags', 'must be an array', orNull(...arrays)),
  'headers: object': wrongTypes('headers', 'must be an object', orNull(...objects)),
  'scheduled_at: string': wrongTypes('scheduled_at', STRINGS, orNull('a string')),

  'an address in an array is a string, and param names the very one at fault': ['to', 'cc', 'bcc', 'reply_to'].flatMap(
    (field): Row[] => [
      [`${field}.0 is a number`, { [field]: [5] }, [`${field}.0`, STRINGS]],
      [`${field}.0 is null`, { [field]: [null] }, [`${field}.0`, STRINGS]],
      [`${field}.0 is an object`, { [field]: [{ email: 'a@example.net' }] }, [`${field}.0`, STRINGS]],
      [`${field}.0 is an array`, { [field]: [['a@example.net']] }, [`${field}.0`, STRINGS]],
      [`${field}.2 is true`, { [field]: ['a@example.net', 'b@example.net', true] }, [`${field}.2`, STRINGS]],
      [`${field}.1 is no address`, { [field]: ['a@example.net', 'nobody'] }, [`${field}.1`, ADDRESS]],
      [`${field} is no address`, { [field]: 'nobody' }, [field, ADDRESS]],
      [`${field} is empty`, { [field]: '' }, [field, ADDRESS]],
      [`${field} holds two addresses`, { [field]: 'a@example.net, b@example.net' }, [field, 'must be']],
      [`${field} is one address`, { [field]: 'Ada <a@example.net>' }],
    ],
  ),
  'parts of tags': [
    ['a tag is a string', { tags: ['a:b'] }, ['tags.0', 'must be an object']],
    ['a tag is null', { tags: [null] }, ['tags.0', 'must be an object']],
    ['a tag is an array', { tags: [['a', 'b']] }, ['tags.0', 'must be an object']],
    ['a name is left out', { tags: [{ value: 'b' }] }, ['tags.0.name', 'is required']],
    ['a value is left out', { tags: [TAG, { name: 'b' }] }, ['tags.1.value', 'is required']],
    ['a name is null', { tags: [{ name: null, value: 'b' }] }, ['tags.0.name', STRINGS]],
    ['a name is a number', { tags: [{ name: 5, value: 'b' }] }, ['tags.0.name', STRINGS]],
    ['a value is null', { tags: [{ name: 'a', value: null }] }, ['tags.0.value', STRINGS]],
    ['a value is true', { tags: [{ name: 'a', value: true }] }, ['tags.0.value', STRINGS]],
    ['a value is an object', { tags: [{ name: 'a', value: {} }] }, ['tags.0.value', STRINGS]],
  ],
  'parts of headers': [
    ['a value is a number', { headers: { 'X-A': 5 } }, ['headers.X-A', STRINGS]],
    ['a value is null', { headers: { 'X-A': null } }, ['headers.X-A', STRINGS]],
    ['a value is an array', { headers: { 'X-A': ['b'] } }, ['headers.X-A', STRINGS]],
    ['a value is an object', { headers: { 'X-A': {} } }, ['headers.X-A', STRINGS]],
    ['a value is true', { headers: { 'X-B': 'b', 'X-A': true } }, ['headers.X-A', STRINGS]],
    ['a name holds the marks of a path', { headers: { 'a/b~c.d': 5 } }, ['headers.a/b~c.d', STRINGS]],
    ['a value is empty', { headers: { 'X-A': '' } }],
  ],
  'unknown body fields are refused with 422 that names them': [
    ['in the email', { reply: 'a@example.net' }, ['reply', 'is not a known field']],
    ['in another case', { Subject: 'x' }, ['Subject', 'is not a known field']],
    ['in another spelling', { replyTo: 'a@example.net' }, ['replyTo', 'is not a known field']],
    ['null', { unknown: null }, ['unknown', 'is not a known field']],
    ['in a tag', { tags: [TAG, { name: 'b', value: 'c', x: 1 }] }, ['tags.1.x', 'is not a known field']],
    ['what answers hold', { id: 'em_1' }, ['id', 'is not a known field']],
    ['of a batch', { emails: [] }, ['emails', 'is not a known field']],
    ['named like members of objects', { constructor: 1 }, ['constructor', 'is not a known field']],
    ['named like members of objects', { toString: 1 }, ['toString', 'is not a known field']],
    ['named like members of objects', { hasOwnProperty: 1 }, ['hasOwnProperty', 'is not a known field']],
    ['with a dot', { 'to.0': 'a@example.net' }, ['to.0', 'is not a known field']],
    ['with a slash and a tilde', { 'a/b~c': 1 }, ['a/b~c', 'is not a known field']],
    ['with a line break', { 'a\r\nb': 1 }, ['a\r\nb', 'is not a known field']],
    ['too long to be repeated', { ['x'.repeat(100_000)]: 1 }, ['x'.repeat(200), 'is not a known field']],
  ],
});
