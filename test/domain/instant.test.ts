import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseInstant } from '../../src/domain/instant.ts';

const ACCEPTED: readonly (readonly [title: string, text: string, utc: string])[] = [
  ['UTC with milliseconds, as we write it', '2026-03-01T09:30:15.123Z', '2026-03-01T09:30:15.123Z'],
  ['UTC in minutes', '2026-03-01T09:30Z', '2026-03-01T09:30:00.000Z'],
  ['an offset ahead', '2026-03-01T09:30:00+02:00', '2026-03-01T07:30:00.000Z'],
  ['an offset behind', '2026-03-01T09:30:00-05:30', '2026-03-01T15:00:00.000Z'],
  ['an offset of -00:00 (RFC 3339: local time unknown)', '2026-03-01T09:30:00-00:00', '2026-03-01T09:30:00.000Z'],
  ['an offset without its colon', '2026-03-01T09:30:00+0545', '2026-03-01T03:45:00.000Z'],
  ['an offset of hours', '2026-03-01T09:30:00+02', '2026-03-01T07:30:00.000Z'],
  ['the largest offset ahead', '2026-03-01T00:00:00+23:59', '2026-02-28T00:01:00.000Z'],
  ['the largest offset behind', '2026-02-28T23:59:59-23:59', '2026-03-01T23:58:59.000Z'],
  ['an offset that leads into the next year', '2026-12-31T23:30:00-01:00', '2027-01-01T00:30:00.000Z'],
  ['one digit of a fraction', '2026-03-01T09:30:00.5Z', '2026-03-01T09:30:00.500Z'],
  ['nine digits of a fraction, cut and not rounded', '2026-03-01T09:30:00.123999999Z', '2026-03-01T09:30:00.123Z'],
  ['the last nanosecond of a year, cut', '2026-12-31T23:59:59.999999999Z', '2026-12-31T23:59:59.999Z'],
  ['a comma, which ISO 8601 prefers', '2026-03-01T09:30:00,25Z', '2026-03-01T09:30:00.250Z'],
  ['small letters, which RFC 3339 allows', '2026-03-01t09:30:00z', '2026-03-01T09:30:00.000Z'],
  ['the year 1, which is not 1901', '0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ['the last instant of the year 9999', '9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
];

const REFUSED: readonly (readonly [title: string, text: string])[] = [
  ['no offset', '2026-03-01T09:30:00'],
  ['a date alone', '2026-03-01'],
  ['hours alone', '2026-03-01T09Z'],
  ['Unix seconds', '1772357400'],
  ['the name of a zone in brackets', '2026-03-01T09:30:00+01:00[Europe/Berlin]'],
  ['29 February of a common year', '2026-02-29T00:00:00Z'],
  ['29 February of a century', '2100-02-29T00:00:00Z'],
  ['29 February of the year 100, which is not 2000', '0100-02-29T00:00:00Z'],
  ['hour 24', '2026-03-01T24:00:00Z'],
  ['second 60', '2016-12-31T23:59:60Z'],
  ['an offset of +24:00', '2026-03-01T09:30:00+24:00'],
  ['an offset with 60 minutes', '2026-03-01T09:30:00+01:60'],
  ['an offset with one digit', '2026-03-01T09:30:00+2'],
  ['an offset with seconds', '2026-03-01T09:30:00+01:00:00'],
  ['the minus sign of Unicode', '2026-03-01T09:30:00\u221201:00'],
  ['the year 0', '0000-06-01T00:00:00Z'],
  ['an offset that leads into the year 0', '0001-01-01T00:00:00+00:01'],
  ['an offset that leads into the year 10000', '9999-12-31T23:59:59-00:01'],
  ['a year of five digits', '12026-03-01T09:30:00Z'],
  ['a year with a sign', '+002026-03-01T09:30:00Z'],
  ['a week date', '2026-W09-7T09:30:00Z'],
  ['the basic form', '20260301T093000Z'],
  ['a space for the T', '2026-03-01 09:30:00Z'],
  ['a space after', '2026-03-01T09:30:00Z '],
  ['a line break after', '2026-03-01T09:30:00Z\n'],
  ['a space before the offset', '2026-03-01T09:30:00 +01:00'],
  ['a point without a fraction', '2026-03-01T09:30:00.Z'],
  ['a fraction of ten digits', '2026-03-01T09:30:00.1234567890Z'],
  ['a fraction of a minute', '2026-03-01T09:30.5Z'],
  ['digits of another script', '２０２６-03-01T09:30:00Z'],
];

describe('instants', () => {
  for (const [title, text, utc] of ACCEPTED) {
    it(`accepts ${title}`, () => assert.equal(parseInstant(text)?.toISOString(), utc));
  }
  for (const [title, text] of REFUSED) {
    it(`refuses ${title}`, () => assert.equal(parseInstant(text), undefined));
  }

  it('reads what Date writes, at any offset', () => {
    const instants = fc.date({
      min: new Date('0002-01-01T00:00:00Z'),
      max: new Date('9998-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(instants, fc.integer({ min: -1439, max: 1439 }), (instant, minutes) => {
        assert.deepEqual(parseInstant(instant.toISOString()), instant);
        const local = new Date(instant.getTime() + minutes * 60_000).toISOString().slice(0, -1);
        const [hour, minute] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
        const offset = `${minutes < 0 ? '-' : '+'}${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`;
        assert.deepEqual(parseInstant(local + offset), instant);
      }),
    );
  });

  it('agrees with Date about which days and times exist', () => {
    const two = fc.integer({ min: 0, max: 99 }).map((value) => String(value).padStart(2, '0'));
    const year = fc.integer({ min: 1, max: 9999 }).map((value) => String(value).padStart(4, '0'));
    const day = fc.tuple(year, fc.integer({ min: 0, max: 14 }), fc.integer({ min: 0, max: 33 }));
    fc.assert(
      fc.property(day, two, two, two, ([y, m, d], hour, minute, second) => {
        const date = `${y}-${String(m).padStart(2, '0')}-${String(d).padStart(2, '0')}`;
        const text = `${date}T${hour}:${minute}:${second}.000Z`;
        const judge = new Date(text);
        // Date takes 31 February for 3 March, and 24:00 for the next day: then it does not write what it read.
        const exists = !Number.isNaN(judge.getTime()) && judge.toISOString() === text;
        assert.equal(parseInstant(text)?.toISOString(), exists ? text : undefined);
      }),
      { numRuns: 5_000 },
    );
  });

  it('never throws, and gives only what Postgres can store', () => {
    const nearly = fc.stringMatching(
      /^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-6]\d(:[0-6]\d([.,]\d{1,10})?)?(Z|[+-][0-2]\d(:?[0-6]\d)?)$/,
    );
    fc.assert(
      fc.property(fc.oneof(nearly, fc.string({ unit: 'binary' })), (text) => {
        const instant = parseInstant(text);
        if (instant) assert.match(instant.toISOString(), /^(?!0000)\d{4}-/);
      }),
      { numRuns: 5_000 },
    );
  });
});
