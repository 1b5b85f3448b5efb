import fc from 'fast-check';

/** Any string of 16-bit units, lone surrogates and controls among them. */
export const anyString = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
});

const ATOM = fc.string({
  unit: fc.constantFrom(...Array.from("abzAZ019!#$%&'*+-/=?^_`{|}~")),
  minLength: 1,
  maxLength: 8,
});
const LABEL = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[A-Za-z0-9](?:[a-z0-9-]{0,6}[a-z0-9])?$/) },
  fc.constantFrom('bücher', 'BÜCHER', 'пример', '例え', 'straße', 'ｅｘ', 'xn--bcher-kva', 'xn--p1ai', 'دامنه'),
);
const DOT = fc.oneof({ weight: 9, arbitrary: fc.constant('.') }, fc.constantFrom('。', '．', '｡'));
const SPACE = fc.constantFrom('', '', ' ', '  ', '\u00A0', '\u3000');

const LOCAL = fc.array(ATOM, { minLength: 1, maxLength: 3 }).map((atoms) => atoms.join('.'));
const DOMAIN = fc
  .tuple(LABEL, fc.array(fc.tuple(DOT, LABEL), { minLength: 1, maxLength: 3 }))
  .map(([first, rest]) => first + rest.flat().join(''));
const ADDRESS = fc.tuple(LOCAL, DOMAIN).map(([local, domain]) => `${local}@${domain}`);

/** Printable characters that a name may hold when it is in quotes. */
const PRINTABLE = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) },
  fc.constantFrom('é', 'ß', 'Ж', '山', 'ا', '😀', '❤\uFE0F', '“', '＠', '＜', '\u00A0', '。'),
);
/** Display names as people write them: without outer spaces. */
export const nameText = fc
  .string({ unit: PRINTABLE, minLength: 1, maxLength: 30 })
  .map((text) => text.trim())
  .filter((text) => text !== '');

const QUOTED = fc
  .array(
    fc.oneof(
      PRINTABLE.map((text) => text.replace(/["\\]/g, '\\$&')),
      fc.constantFrom('\\a', '\\ ', '\\😀'),
    ),
    { maxLength: 12 },
  )
  .map((parts) => `"${parts.join('')}"`);
const UNQUOTED = fc
  .array(fc.oneof(ATOM, fc.constantFrom('Dr.', 'É.', '山田', 'أحمد', '=?utf-8?q?x?=', '😀')), {
    minLength: 1,
    maxLength: 4,
  })
  .map((words) => words.join(' '));

/** Addresses in the two forms of the contract; nearly all of them are within its limits. */
export const address = fc.oneof(
  fc.tuple(SPACE, ADDRESS, SPACE).map((parts) => parts.join('')),
  fc
    .tuple(SPACE, fc.oneof(QUOTED, UNQUOTED, fc.constant('')), SPACE, SPACE, ADDRESS, SPACE, SPACE)
    .map(([a, name, b, c, inside, d, e]) => `${a}${name}${b}<${c}${inside}${d}>${e}`),
);

/** Text that parsers mishandle: specials, white space, other addresses, comments, groups, routes, encodings. */
const HOSTILE = fc.constantFrom(
  ...Array.from('@<>"\\,;:()[] .\t\r\n\0-_%\'\u200B\u200D\u202E\uFEFF\u00AD\u2028\u0085\uD800。＠＜＞'),
  ...'"" \\" <> () (x) (a@b.example) <a@b.example> a@b.example "a@b" G: ; @c.example: [127.0.0.1]'.split(' '),
  ...'%40 %2e =40 =?utf-8?q?a=40b?= =?utf-8?b?YUBi?= &lt; xn-- ..'.split(' '),
  ...[', a@b.example', '\r\n '],
);
const EDIT = fc.tuple(fc.constantFrom('insert', 'replace', 'delete', 'repeat'), fc.nat(), fc.nat({ max: 3 }), HOSTILE);

/** Addresses with up to four random edits, some of which keep them valid. */
export const nearAddress = fc.tuple(address, fc.array(EDIT, { minLength: 1, maxLength: 4 })).map(([text, edits]) =>
  edits.reduce((before, [edit, at, length, hostile]) => {
    const start = at % (before.length + 1);
    const end = start + length;
    const [head, part, tail] = [before.slice(0, start), before.slice(start, end), before.slice(end)];
    return head + { insert: hostile + part, replace: hostile, delete: '', repeat: part + part }[edit] + tail;
  }, text),
);
