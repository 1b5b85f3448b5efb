import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ServiceError } from '../../src/domain/errors.ts';
import {
  exactZonedValue,
  firstInstant,
  startOfDay,
  timeZoneOf,
  zonedInstant,
  zonedValue,
  zonedWords,
} from '../../src/dashboard/instants.ts';

const refusal = (param: string, message: RegExp) => (error: unknown) =>
  error instanceof ServiceError && error.param === param && message.test(error.message);

describe('a local time', () => {
  for (const [local, zone, instant] of [
    ['2026-03-01T09:30', 'UTC', '2026-03-01T09:30:00.000Z'],
    ['2026-03-01T09:30:15.5', 'UTC', '2026-03-01T09:30:15.500Z'],
    ['2026-03-01T09:30', 'Europe/Berlin', '2026-03-01T08:30:00.000Z'],
    ['2026-07-01T09:30', 'Europe/Berlin', '2026-07-01T07:30:00.000Z'],
    ['2026-12-31T20:00', 'America/New_York', '2027-01-01T01:00:00.000Z'],
    ['2026-06-01T00:15', 'Asia/Kathmandu', '2026-05-31T18:30:00.000Z'],
    // Clocks are put forward at 01:00 UTC on 2026-03-29, and back on 2026-10-25.
    ['2026-03-29T01:59', 'Europe/Berlin', '2026-03-29T00:59:00.000Z'],
    ['2026-03-29T03:00', 'Europe/Berlin', '2026-03-29T01:00:00.000Z'],
    ['2026-10-25T02:30', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
    ['2026-10-25T03:00', 'Europe/Berlin', '2026-10-25T02:00:00.000Z'],
  ] as const) {
    it(`${local} in ${zone} is ${instant}`, () => {
      assert.equal(zonedInstant(local, zone, 'at'), instant);
    });
  }

  it('is refused if clocks skip it, or if it is none', () => {
    assert.throws(() => zonedInstant('2026-03-29T02:30', 'Europe/Berlin', 'at'), refusal('at', /does not exist/));
    for (const text of [
      '',
      'tomorrow',
      '2026-02-30T00:00',
      '2026-03-01',
      '2026-03-01T09:30Z',
      '2026-03-01T09:30+01:00',
    ]) {
      assert.throws(() => zonedInstant(text, 'UTC', 'at'), refusal('at', /is not a day and time/), text);
    }
  });

  it('is refused in a year below 100, and if its instant is in the year 10000', () => {
    for (const text of ['0026-03-01T09:30', '0099-12-31T23:59', '9999-12-31T23:59']) {
      assert.throws(() => zonedInstant(text, 'America/New_York', 'at'), refusal('at', /is not a day and time/), text);
    }
    assert.equal(zonedInstant('9999-12-31T18:59', 'America/New_York', 'at'), '9999-12-31T23:59:00.000Z');
  });

  it('is the inverse of what a field shows, except in the hour that occurs twice', () => {
    const zones = ['UTC', 'Europe/Berlin', 'America/St_Johns', 'Australia/Lord_Howe', 'Pacific/Apia'];
    const minutes = fc.integer({ min: Date.UTC(2000, 0) / 60_000, max: Date.UTC(2040, 0) / 60_000 });
    fc.assert(
      fc.property(fc.constantFrom(...zones), minutes, (zone, minute) => {
        const instant = new Date(minute * 60_000).toISOString();
        const back = zonedInstant(zonedValue(instant, zone), zone, 'at');
        assert.equal(zonedValue(back, zone), zonedValue(instant, zone));
        assert.ok(back <= instant && Date.parse(instant) - Date.parse(back) <= 3_600_000, `${instant} ${back}`);
      }),
    );
  });
});

describe('the exact value of a field', () => {
  for (const [instant, zone, value] of [
    ['2026-11-28T07:00:00.000Z', 'Europe/Berlin', '2026-11-28T08:00'],
    ['2026-11-28T07:00:30.000Z', 'UTC', '2026-11-28T07:00:30'],
    ['2026-11-28T07:00:00.250Z', 'UTC', '2026-11-28T07:00:00.250'],
    ['2026-10-25T00:30:00.000Z', 'Europe/Berlin', '2026-10-25T02:30'],
    // The same local time again, after clocks were put back.
    ['2026-10-25T01:30:00.000Z', 'Europe/Berlin', undefined],
  ] as const) {
    it(`is ${value ?? 'none'} for ${instant} in ${zone}`, () => {
      assert.equal(exactZonedValue(new Date(instant), zone), value);
      if (value !== undefined) assert.equal(firstInstant(value, zone)?.toISOString(), instant);
    });
  }
});

describe('a day', () => {
  for (const [day, zone, instant] of [
    ['2026-03-01', 'UTC', '2026-03-01T00:00:00.000Z'],
    ['2026-03-01', 'Asia/Tokyo', '2026-02-28T15:00:00.000Z'],
    // Clocks are put forward at midnight, and in Samoa they skipped the whole day.
    ['2018-11-04', 'America/Sao_Paulo', '2018-11-04T03:00:00.000Z'],
    ['2011-12-30', 'Pacific/Apia', '2011-12-30T10:00:00.000Z'],
    // Clocks are put back to the midnight that has passed.
    ['2018-02-18', 'America/Sao_Paulo', '2018-02-18T03:00:00.000Z'],
    ['2026-11-01', 'America/Havana', '2026-11-01T04:00:00.000Z'],
    ['0100-01-01', 'UTC', '0100-01-01T00:00:00.000Z'],
    ['9999-12-31', 'America/New_York', '9999-12-31T05:00:00.000Z'],
  ] as const) {
    it(`${day} in ${zone} begins at ${instant}`, () => {
      assert.equal(startOfDay(day, zone)?.toISOString(), instant);
    });
  }

  it('that does not exist has no beginning', () => {
    for (const text of ['2026-02-30', '0026-01-01', 'today', '']) assert.equal(startOfDay(text, 'UTC'), undefined);
  });
});

describe('a time zone', () => {
  it('keeps its name, in the case of the IANA database', () => {
    assert.equal(timeZoneOf('europe/berlin'), 'Europe/Berlin');
    for (const name of ['Europe/Kyiv', 'Asia/Kolkata', 'CET']) assert.equal(timeZoneOf(name), name);
    assert.equal(timeZoneOf('UTC'), 'UTC');
    for (const text of ['', 'Berlin', '+02:00', 'Europe/Berlin; DROP', '../etc', 'x'.repeat(100)]) {
      assert.throws(() => timeZoneOf(text), refusal('time_zone', /is not a time zone/), text);
    }
  });

  it('is stated beside a time in a sentence', () => {
    assert.match(
      zonedWords('2026-12-01T14:00:00.000Z', 'America/New_York'),
      /Dec 1, 2026, 9:00\sAM \(America\/New_York\)/,
    );
  });
});
