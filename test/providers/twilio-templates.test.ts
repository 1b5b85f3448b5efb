import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { componentsProblem, fillContent } from '../../src/providers/twilio/templates.ts';

const of = (components?: unknown) => ({ name: 'n', language: 'en', components });
const text = (value: unknown, name?: string) => ({
  type: 'text',
  text: value,
  ...(name !== undefined && { parameter_name: name }),
});
const body = (...parameters: unknown[]) => ({ type: 'body', parameters });

function fill(components: unknown, ...variables: string[]) {
  return fillContent(of(components), { contentSid: 'HX1', variables });
}

describe('components become variables', () => {
  test('in the order header, body, buttons by their index, whatever their order in the request', () => {
    const components = [
      { type: 'button', sub_type: 'quick_reply', index: 1, parameters: [{ type: 'payload', payload: 'yes' }] },
      { type: 'BUTTON', sub_type: 'URL', index: '0', parameters: [text('path')] },
      body(text('one'), text(2)),
      { type: 'header', parameters: [{ type: 'image', image: { link: 'https://a.example/i.png' } }] },
    ];
    assert.deepEqual(fill(components, '1', '2', '3', '4', '5'), {
      values: { 1: 'https://a.example/i.png', 2: 'one', 3: '2', 4: 'path', 5: 'yes' },
    });
  });

  test('of each kind that has a text or a link', () => {
    const components = [
      { type: 'header', parameters: [{ type: 'video', video: { link: 'v' } }] },
      body(
        { type: 'currency', currency: { fallback_value: '5 €', code: 'EUR', amount_1000: 5_000 } },
        { type: 'date_time', date_time: { fallback_value: 'Monday' } },
        { type: 'document', document: { link: 'd' } },
      ),
      { type: 'button', sub_type: 'copy_code', index: 0, parameters: [{ type: 'coupon_code', coupon_code: 'C' }] },
    ];
    assert.deepEqual(fill(components, 'a', 'b', 'c', 'd', 'e'), {
      values: { a: 'v', b: '5 €', c: 'Monday', d: 'd', e: 'C' },
    });
  });

  test('by name where they have one', () => {
    assert.deepEqual(fill([body(text('x', 'second'), text('y'))], 'first', 'second'), {
      values: { first: 'y', second: 'x' },
    });
  });

  test('none where there are none', () => {
    for (const components of [undefined, null, [], [{ type: 'body' }], [body()]])
      assert.deepEqual(fill(components), { values: {} });
  });

  for (const [name, components, problem] of [
    ['too few', [body(text('x'))], 'The template has 2 variables at Twilio, not 1.'],
    ['too many', [body(text('x'), text('y'), text('z'))], 'The template has 2 variables at Twilio, not 3.'],
    ['an unknown name', [body(text('x', 'c'), text('y'))], 'The template has no variable c at Twilio.'],
    ['one twice', [body(text('x', 'a'), text('y', 'a'))], 'The template’s variable b has no value.'],
  ] as const) {
    test(`but not ${name}`, () => {
      const filled = fill(components, 'a', 'b');
      assert.deepEqual(filled, { problem: problem.replace('’', "'") });
    });
  }
});

describe('components that Twilio does not support', () => {
  for (const [components, problem] of [
    [{ type: 'body' }, /as a list/],
    [[{ type: 'body', parameters: 'x' }], /parameters of the template's body as a list/],
    [[null], /component of type unknown/],
    [[{ type: 'carousel', cards: [] }], /component of type carousel/],
    [[{ type: 'button', sub_type: 'flow', index: 0 }], /button of type flow/],
    [[body({ type: 'location', location: {} })], /parameter of type location in the template's body/],
    [[body({ type: 'document', document: { link: 'x', filename: 'a.pdf' } })], /without a file name/],
    [[body({ type: 'text', text: { a: 1 } })], /parameter of type text/],
    [[body('x')], /parameter of type unknown/],
  ] as const) {
    test(JSON.stringify(components), () => {
      assert.match(componentsProblem(of(components)) ?? '', problem);
    });
  }

  test('of a long type, whose text is cut between characters', () => {
    const found = componentsProblem(of([{ type: `${'x'.repeat(39)}😀` }])) ?? '';
    assert.ok(found.includes('x'.repeat(39)) && found.isWellFormed(), found);
  });
});
