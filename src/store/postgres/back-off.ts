/**
 * SQL of the time of the next try of a row after `tries` failures: one unit from now, doubling.
 * @param max the longest delay, in units
 */
export const backOff = (max: number, unit: 'second' | 'minute'): string =>
  `now() + least(power(2, least(tries, 20)), ${max}) * interval '1 ${unit}'`;
