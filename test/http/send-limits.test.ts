import { inFuture } from './service.ts';
import { addresses, type Row, sendTable } from './send-table.ts';

const ITEMS = 'must hold 1 to 50 items';
const SUBJECT = 'must be 1 to 998 characters';
const BODY = 'must be at most 1000000 characters';
const PART = 'must be 1 to 256 characters';
const IN_PART = 'may hold only letters, digits, _ and -';
/** One code point, two UTF-16 units, four bytes of UTF-8. */
const ASTRAL = '😀';

const tags = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `t${index}`, value: 'x' }));
const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`X-${i}`, 'x']));

function body(field: string, other: string): Row[] {
  return [
    [`1,000,000 characters`, { [other]: undefined, [field]: 'a'.repeat(1_000_000) }],
    [`1,000,001 characters`, { [field]: 'a'.repeat(1_000_001) }, [field, BODY]],
    [`1,000,000 astral characters`, { [other]: undefined, [field]: ASTRAL.repeat(1_000_000) }],
    [`1,000,001 astral characters`, { [field]: ASTRAL.repeat(1_000_001) }, [field, BODY]],
    [`40,000,000 characters`, { [field]: 'a'.repeat(40_000_000) }, [field, BODY]],
    [`1 character`, { [other]: undefined, [field]: 'a' }],
    [`empty beside the other one`, { [other]: 'a', [field]: '' }],
    [`empty and alone`, { [other]: undefined, [field]: '' }, [field, field === 'text' ? 'must not be' : 'is required']],
    [`empty like the other one`, { [other]: '', [field]: '' }, ['html', 'is required unless text is given']],
    [`white space`, { [other]: undefined, [field]: ' ' }],
  ];
}

function tagPart(part: 'name' | 'value'): Row[] {
  const tag = (text: string) => ({ tags: [{ name: 'a', value: 'b', [part]: text }] });
  const param = `tags.0.${part}`;
  return [
    ['1 character', tag('a')],
    ['256 characters', tag('a'.repeat(256))],
    ['257 characters', tag('a'.repeat(257)), [param, PART]],
    ['empty', tag(''), [param, PART]],
    ['every allowed kind of character', tag('azAZ09_-')],
    ...[' ', '.', ':', 'é', ASTRAL, '"', '%', '\\', 'a b', 'a ', ' a', '٣', 'ａ'].map((text): Row => [
      `holds ${JSON.stringify(text)}`,
      tag(text),
      [param, IN_PART],
    ]),
  ];
}

sendTable({
  '1 to 50 addresses in to': [
    ['none', { to: [] }, ['to', ITEMS]],
    ['1', { to: addresses(1) }],
    ['50', { to: addresses(50) }],
    ['51', { to: addresses(51) }, ['to', ITEMS]],
    ['51 times the same', { to: Array(51).fill('a@example.net') }, ['to', ITEMS]],
  ],
  '1 to 50 addresses in cc': [
    ['none', { cc: [] }, ['cc', ITEMS]],
    ['50', { cc: addresses(50) }],
    ['51', { cc: addresses(51) }, ['cc', ITEMS]],
  ],
  '1 to 50 addresses in bcc': [
    ['none', { bcc: [] }, ['bcc', ITEMS]],
    ['50', { bcc: addresses(50) }],
    ['51', { bcc: addresses(51) }, ['bcc', ITEMS]],
  ],
  '50 each': [['150 recipients', { to: addresses(50), cc: addresses(50), bcc: addresses(50) }]],
  '[] means none for reply_to, which holds at most 50': [
    ['none', { reply_to: [] }],
    ['50', { reply_to: addresses(50) }],
    ['51', { reply_to: addresses(51) }, ['reply_to', 'must hold at most 50 items']],
  ],
  'subject: 1 to 998 characters, which are Unicode code points': [
    ['empty', { subject: '' }, ['subject', SUBJECT]],
    ['1', { subject: 'a' }],
    ['998', { subject: 'a'.repeat(998) }],
    ['999', { subject: 'a'.repeat(999) }, ['subject', SUBJECT]],
    ['998 astral', { subject: ASTRAL.repeat(998) }],
    ['999 astral', { subject: ASTRAL.repeat(999) }, ['subject', SUBJECT]],
    ['998 with a combining mark each', { subject: 'é'.normalize('NFD').repeat(499) }],
    ['999 with a combining mark each', { subject: `${'é'.normalize('NFD').repeat(499)}e` }, ['subject', SUBJECT]],
    ['a million', { subject: 'a'.repeat(1_000_000) }, ['subject', SUBJECT]],
    ['white space', { subject: ' ' }],
  ],
  'html: up to 1,000,000 characters; html and text may not both be empty': body('html', 'text'),
  'text: up to 1,000,000 characters; html and text may not both be empty': body('text', 'html'),
  'html and text: both may be given': [
    ['1,000,000 characters each', { html: 'a'.repeat(1_000_000), text: 'b'.repeat(1_000_000) }],
  ],
  'up to 10 tags, [] means none': [
    ['none', { tags: [] }],
    ['10', { tags: tags(10) }],
    ['11', { tags: tags(11) }, ['tags', 'must hold at most 10 items']],
  ],
  'tag names are unique within the email': [
    ['twice, with one value', { tags: [...tags(2), ...tags(1)] }, ['tags.2.name', 'appears twice']],
    ['in another case', { tags: [tags(1)[0], { name: 'T0', value: 'x' }] }],
    ['one value twice', { tags: tags(2) }],
  ],
  'tag names use letters, digits, _, -, up to 256 characters': tagPart('name'),
  'tag values use letters, digits, _, -, up to 256 characters': tagPart('value'),
  'at most 20 headers': [
    ['none', { headers: {} }],
    ['20', { headers: headers(20) }],
    ['21', { headers: headers(21) }, ['headers', 'must hold at most 20 headers']],
    ['10,000', { headers: headers(10_000) }, ['headers', 'must hold at most 20 headers']],
  ],
  'header names: printable ASCII without colon and space, up to 126 characters': [
    ['1', { headers: { X: 'x' } }],
    ['126', { headers: { ['X'.repeat(126)]: 'x' } }],
    ['127', { headers: { ['X'.repeat(127)]: 'x' } }, [`headers.${'X'.repeat(126)}`, 'must have a name of at most 126']],
    ...['', ' ', 'X A', 'X-A ', ' X-A', 'X:A', 'X-A:', 'X-É', 'X-😀', 'X\tA'].map((name): Row => [
      `named ${JSON.stringify(name)}`,
      { headers: { [name]: 'x' } },
      [`headers.${name}`, 'must be named in printable ASCII without spaces or colons'],
    ]),
    ['every printable character', { headers: { '!"#$%&\'()*+,-./09;<=>?@AZ[\\]^_`az{|}~': 'x' } }],
  ],
  'header names are case-insensitive and appear once': [
    ['twice', { headers: { 'X-A': '1', 'x-a': '2' } }, ['headers.x-a', 'appears twice']],
  ],
  'header values: a single line, up to 870 characters': [
    ['870', { headers: { 'X-A': 'a'.repeat(870) } }],
    ['871', { headers: { 'X-A': 'a'.repeat(871) } }, ['headers.X-A', 'must be at most 870 characters']],
    ['870 astral', { headers: { 'X-A': ASTRAL.repeat(870) } }],
    ['871 astral', { headers: { 'X-A': ASTRAL.repeat(871) } }, ['headers.X-A', 'must be at most 870 characters']],
  ],
  'these names are refused': [
    ...['From', 'Sender', 'To', 'Cc', 'Bcc', 'Reply-To', 'Subject', 'Date', 'Message-ID', 'Return-Path'],
    ...['MIME-Version', 'Content-Type', 'Content-Transfer-Encoding', 'Content-Disposition', 'DKIM-Signature'],
    ...['Received', 'Resent-From', 'Resent-Date', 'Resent-Message-ID', 'Resent-Sender', 'Resent-To', 'Resent-Cc'],
  ].flatMap((name) =>
    [name, name.toLowerCase(), name.toUpperCase()].map((given): Row => [
      given,
      { headers: { [given]: 'x' } },
      [`headers.${given}`, 'is set by Sendwright'],
    ]),
  ),
  'other names are not': [
    'List-Unsubscribe',
    'X-From',
    'Content-Language',
    'References',
    'In-Reply-To',
    'constructor',
    'toString',
  ].map((name): Row => [name, { headers: { [name]: 'x' } }]),
  'scheduled_at: in the future, at most 30 days ahead': [
    ['now', () => ({ scheduled_at: inFuture({}) }), ['scheduled_at', 'must be in the future']],
    ['a second ago', () => ({ scheduled_at: inFuture({ ms: -1_000 }) }), ['scheduled_at', 'must be in the future']],
    ['years ago', { scheduled_at: '2001-01-01T00:00:00Z' }, ['scheduled_at', 'must be in the future']],
    ['in the first year', { scheduled_at: '0001-01-01T00:00:00Z' }, ['scheduled_at', 'must be in the future']],
    ['5 s from now', () => ({ scheduled_at: inFuture({ ms: 5_000 }) })],
    ['30 days less 5 s', () => ({ scheduled_at: inFuture({ days: 30, ms: -5_000 }) })],
    [
      '30 days and 5 s',
      () => ({ scheduled_at: inFuture({ days: 30, ms: 5_000 }) }),
      ['scheduled_at', 'must be at most 30 days ahead'],
    ],
    ['the last instant', { scheduled_at: '9999-12-31T23:59:59.999Z' }, ['scheduled_at', 'must be at most 30 days']],
  ],
  'scheduled_at: ISO 8601 instant with an offset': [
    ...['', ' ', 'tomorrow', 'now', '1800000000', '2026-03-01', '2026-03-01T09:30:00', '2026-03-01 09:30:00Z'],
    ...['2026-02-30T09:30:00Z', '2026-03-01T24:00:00Z', '2026-03-01T09:60:00Z', '2026-13-01T09:30:00Z'],
    ...['10000-01-01T00:00:00Z', '9999-12-31T23:59:59-00:01', 'Sun, 01 Mar 2026 09:30:00 GMT', 'infinity'],
  ].map((text): Row => [JSON.stringify(text), { scheduled_at: text }, ['scheduled_at', 'must be an ISO 8601 instant']]),
});
