import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readFields } from '../../src/dashboard/forms.ts';
import { isTwilioSignature } from '../../src/providers/twilio/callbacks.ts';
import { processorMs } from '../support/processor-time.ts';

/** Forms that anyone can send: 2,000 fields, and as many as fit in a body. */
const [FEW, MANY] = [2_000, 20_000];
/** Milliseconds of processor time below which a measurement is ignored. */
const NOISE_MS = 30;
/** Ten times as many fields: 10 would be linear, 100 quadratic. */
const MAX_RATIO = 40;

const FORMS: Readonly<Record<string, (index: number) => string>> = {
  'one name': () => 'a=1',
  'names of their own': (index) => `a${index}=`,
};

const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  'a form of the dashboard': readFields,
  "Twilio's callback": (text) =>
    isTwilioSignature('token', 'https://example.com/callbacks/twilio', new URLSearchParams(text), `${'A'.repeat(27)}=`),
};

function fastest(run: () => unknown): number {
  let best = Infinity;
  for (let i = 0; i < 3 && best > NOISE_MS; i++) {
    const began = processorMs();
    run();
    best = Math.min(best, processorMs() - began);
  }
  return best;
}

describe('a body with many fields', () => {
  for (const [reader, read] of Object.entries(READERS)) {
    for (const [kind, field] of Object.entries(FORMS)) {
      it(`of ${kind} costs ${reader} no more than in proportion`, () => {
        const time = (fields: number) => {
          const text = Array.from({ length: fields }, (_, index) => field(index)).join('&');
          return fastest(() => read(text));
        };
        const [few, many] = [time(FEW), time(MANY)];
        assert.ok(many < NOISE_MS || many < few * MAX_RATIO, `${few} ms, then ${many} ms`);
      });
    }
  }
});

it('the fields of a form keep the order of their values', () => {
  assert.deepEqual(
    { ...readFields('a=1&b=2%0D%0A3&a=4&a=5&__proto__=x') },
    Object.fromEntries([
      ['a', ['1', '4', '5']],
      ['b', '2\n3'],
      ['__proto__', 'x'],
    ]),
  );
});
