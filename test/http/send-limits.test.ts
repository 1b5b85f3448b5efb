import { inFuture } from './service.ts';
import { addresses, type Row, sendTable } from './send-table.ts';

const ITEMS = 'must have 1 to 50 items';
const SUBJECT = 'must be 1 to 998 characters';
const BODY = 'must be at most 1000000 characters';
const PART = 'must be 1 to 256 characters';
const IN_PART = 'may contain only letters, digits, _ and -';
/** One code point, two UTF-16 units, four bytes of UTF-8. */
const ASTRAL = '😀';

const tags = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `t${index}`, value: 'x' }));
const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, 'x']));
const header = (name: string, value = 'x') => ({ headers: { [name]: value } });

const body = (field: string, other: string): Row[] => [
  ['1,000,000 astral characters', { [other]: undefined, [field]: ASTRAL.repeat(1_000_000) }],
  ['1,000,001 astral characters', { [field]: ASTRAL.repeat(1_000_001) }, [field, BODY]],
  ['empty beside the other one', { [other]: 'a', [field]: '' }],
  ['empty like the other one', { [other]: '', [field]: '' }, ['html', 'is required unless text is given']],
];

function tagPart(part: 'name' | 'value'): Row[] {
  const tag = (text: string) => ({ tags: [{ name: 'a', value: 'b', [part]: text }] });
  const param = `tags.0.${part}`;
  return [
    ['256 characters', tag('a'.repeat(256))],
    ['257 characters', tag('a'.repeat(257)), [param, PART]],
    ['empty', tag(''), [param, PART]],
    ['every allowed kind of character', tag('azAZ09_-')],
    ...['.', ':', 'é', 'a b'].map((text): Row => [`holds ${JSON.stringify(text)}`, tag(text), [param, IN_PART]]),
  ];
}

await sendTable({
  '1 to 50 addresses in to': [
    ['none', { to: [] }, ['to', ITEMS]],
    ['1', { to: addresses(1) }],
    ['51', { to: addresses(51) }, ['to', ITEMS]],
  ],
  '1 to 50 addresses in cc': [
    ['none', { cc: [] }, ['cc', ITEMS]],
    ['51', { cc: addresses(51) }, ['cc', ITEMS]],
  ],
  '1 to 50 addresses in bcc': [
    ['none', { bcc: [] }, ['bcc', ITEMS]],
    ['51', { bcc: addresses(51) }, ['bcc', ITEMS]],
  ],
  '50 each': [['150 recipients', { to: addresses(50), cc: addresses(50), bcc: addresses(50) }]],
  '[] means none for reply_to, which holds at most 50': [
    ['none', { reply_to: [] }],
    ['50', { reply_to: addresses(50) }],
    ['51', { reply_to: addresses(51) }, ['reply_to', 'must have at most 50 items']],
  ],
  'subject: 1 to 998 characters, which are Unicode code points': [
    ['empty', { subject: '' }, ['subject', SUBJECT]],
    ['999', { subject: 'a'.repeat(999) }, ['subject', SUBJECT]],
    ['998 astral', { subject: ASTRAL.repeat(998) }],
    ['999 astral', { subject: ASTRAL.repeat(999) }, ['subject', SUBJECT]],
  ],
  'html: up to 1,000,000 characters; html and text may not both be empty': body('html', 'text'),
  'text: up to 1,000,000 characters; html and text may not both be empty': body('text', 'html'),
  'html and text: both may be given': [
    ['1,000,000 characters each', { html: 'a'.repeat(1_000_000), text: 'b'.repeat(1_000_000) }],
  ],
  'up to 10 tags, [] means none': [
    ['none', { tags: [] }],
    ['10', { tags: tags(10) }],
    ['11', { tags: tags(11) }, ['tags', 'must have at most 10 items']],
  ],
  'tag names are unique within the email': [
    ['twice, with one value', { tags: [...tags(2), ...tags(1)] }, ['tags.2.name', 'appears twice']],
    ['in another case', { tags: [tags(1)[0], { name: 'T0', value: 'x' }] }],
  ],
  'tag names use letters, digits, _, -, up to 256 characters': tagPart('name'),
  'tag values use letters, digits, _, -, up to 256 characters': tagPart('value'),
  // test/domain/rules.test.ts tests every character of a header name, every refused name, and values.
  'at most 20 headers': [
    ['none', { headers: {} }],
    ['20', { headers: headers(20) }],
    ['21', { headers: headers(21) }, ['headers', 'must have at most 20 headers']],
  ],
  'header names: printable ASCII without colon and space, up to 126 characters': [
    ['126', header('X'.repeat(126))],
    ['127', header('X'.repeat(127)), [`headers.${'X'.repeat(126)}`, 'must have a name of at most 126']],
    ['a space', header('X A'), ['headers.X A', 'must be named in printable ASCII without spaces or colons']],
    ['every printable character', header('!"#$%&\'()*+,-./09;<=>?@AZ[\\]^_`az{|}~')],
  ],
  'header names are case-insensitive and appear once': [
    ['twice', { headers: { 'X-A': '1', 'x-a': '2' } }, ['headers.x-a', 'appears twice']],
  ],
  'header values: a single line, up to 870 characters': [
    ['870 astral', header('X-A', ASTRAL.repeat(870))],
    ['871', header('X-A', 'a'.repeat(871)), ['headers.X-A', 'must be at most 870 characters']],
  ],
  'these names are refused': [
    ['From', header('From'), ['headers.From', 'is set by Sendwright']],
    ['resent-anything', header('resent-anything'), ['headers.resent-anything', 'is set by Sendwright']],
    ['List-Unsubscribe is not', header('List-Unsubscribe')],
  ],
  'scheduled_at: in the future, at most 30 days ahead': [
    ['now', () => ({ scheduled_at: inFuture({}) }), ['scheduled_at', 'must be in the future']],
    ['5 s from now', () => ({ scheduled_at: inFuture({ ms: 5_000 }) })],
    ['30 days less 5 s', () => ({ scheduled_at: inFuture({ days: 30, ms: -5_000 }) })],
    [
      '30 days and 5 s',
      () => ({ scheduled_at: inFuture({ days: 30, ms: 5_000 }) }),
      ['scheduled_at', 'must be at most'],
    ],
  ],
  'scheduled_at: ISO 8601 instant with an offset': ['', 'tomorrow', '1800000000', '2026-03-01T09:30:00'].map(
    (text): Row => [JSON.stringify(text), { scheduled_at: text }, ['scheduled_at', 'must be an ISO 8601 instant']],
  ),
});
