import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusedParty } from '../../src/domain/bounces/account.ts';
import { parseDomain, parseMailbox } from '../../src/domain/email/address.ts';
import { blockedFile } from '../../src/domain/email/attachments.ts';
import { parseInstant } from '../../src/domain/instant.ts';
import { maskAddress, maskAddresses } from '../../src/lib/mask.ts';
import { RULES } from '../../src/domain/rules.ts';
import { bodyProblem, characters, controlProblem } from '../../src/lib/text.ts';
import { processorMs } from '../support/processor-time.ts';

/** Parts that an expression of ours might backtrack over, repeated between a beginning and an end that do not match. */
const UNITS = [
  ...'a A1 . a. - -a a- @ a@ @a < > <> <a <a> a@b.c> " \\ \\" \\\\ , ; : ( ) 0 0x xn-- xn--a. =? ?= =?a?= %40 \' _'.split(
    ' ',
  ),
  ...'é é. 。 \u200B \uFE0F e\u0301 😀 \uD83D ﷺ -é é- 2026- 00: \0 \u00A0 \t \n'.split(' '),
  ' ',
];
const SHELLS = [
  ['', ''],
  ['"', ''],
  ['"', '" <a@b.example>'],
  ['<', '>'],
  ['<a@b.example>', 'x'],
  ['a', '@b.example'],
  ['a@', '.example'],
  ['a@é', ''],
  ['2026-03-01T00:00:00.', 'Z'],
] as const;

/** Milliseconds of processor time of the fastest of three runs: the others may have compiled or collected garbage. */
function fastest(run: (text: string) => unknown, text: string): number {
  let best = Infinity;
  for (let i = 0; i < 3; i++) {
    const started = processorMs();
    run(text);
    best = Math.min(best, processorMs() - started);
    if (best < 5) break;
  }
  return best;
}

const FUNCTIONS: Record<string, (text: string) => unknown> = {
  parseMailbox,
  parseDomain,
  parseInstant,
  maskAddress,
  maskAddresses,
  characters,
  controlProblem,
  bodyProblem,
  'a reply about our account': (text) => refusedParty(text, 'DATA'),
  'the name of a header': (text) => RULES.headers({ [text]: 'x' }),
  'the value of a header': (text) => RULES.headers({ 'X-A': text }),
  'the name of a file': RULES.filename,
  'a content id': RULES['content-id'],
  'a content type': RULES['content-type'],
  'a path': RULES['attachment-path'],
  'a name of the longest kind': (text) => blockedFile({ filename: text.slice(0, 510), content_type: null }),
  'a tag filter': (text) => RULES['tag-filter'](text),
};

describe('100 kB of anything', () => {
  for (const [name, run] of Object.entries(FUNCTIONS)) {
    it(`${name}: takes processor time in proportion to the length`, () => {
      for (const [before, after] of SHELLS) {
        for (const unit of UNITS) {
          const text = (kilobytes: number) => before + unit.repeat((kilobytes * 1_000) / unit.length) + after;
          const whole = fastest(run, text(100));
          if (whole < 50) continue;
          const half = fastest(run, text(50));
          assert.ok(
            whole < 4 * half && whole < 1_000,
            `${JSON.stringify([before, unit, after])}: ${half} ms, then ${whole} ms`,
          );
        }
      }
    });
  }

  it('parseMailbox: takes less than 100 ms of processor time up to the length at which it stops reading', () => {
    for (const [before, after] of SHELLS) {
      for (const unit of UNITS) {
        const text =
          (before + unit.repeat(Math.ceil(998 / Array.from(unit).length))).slice(0, 998 - after.length) + after;
        const time = fastest(parseMailbox, text);
        assert.ok(time < 100, `${JSON.stringify([before, unit, after])}: ${time} ms`);
      }
    }
  });
});
