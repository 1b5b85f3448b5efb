import { Type } from 'typebox';
import { TAG_LENGTH } from '../../domain/limits.ts';
import { STATES, STATISTICS_CHANNELS } from '../../domain/statistics.ts';
import { enumOf, nullable, objectOf, Timestamp } from './common.ts';

const instant = (description: string) =>
  Type.Optional(Type.String({ 'x-rule': 'instant', description, examples: ['2026-03-01T00:00:00Z'] }));

export const StatisticsQuery = Type.Object(
  {
    from: instant(
      'Begin of the period; the hour or day that contains it counts as a whole. 24 hours before `to` by default.',
    ),
    to: instant(
      'End of the period: the last hour or day is the one that begins before it, and counts as a whole. Now by default.',
    ),
    step: Type.Optional(
      enumOf(['hour', 'day'], 'StatisticsStep', 'UTC: by hour for at most 31 days, by day for at most 400', 'day'),
    ),
    by: Type.Optional(
      Type.String({
        'x-rule': 'statistics-dimension',
        description:
          'A series for each sender `domain`, `batch`, API `key`, `bounce_reason`, or value of a tag: `tag:` and its name, of ' +
          `letters, digits, \`_\` and \`-\`, up to ${TAG_LENGTH} characters. Without it, one series has the key \`all\`.`,
        examples: ['domain', 'tag:kind'],
      }),
    ),
    channel: Type.Optional(enumOf(STATISTICS_CHANNELS, 'StatisticsChannel', '`email` by default', 'email')),
  },
  { additionalProperties: false },
);

const count = Type.Integer({ examples: [17] });
const counts = Object.fromEntries(STATES.map((state) => [state, count])) as Record<
  (typeof STATES)[number],
  typeof count
>;
const rate = (description: string) => nullable(Type.Number({ examples: [0.97] }), `${description}; null without any`);
const percentile = nullable(Type.Integer({ examples: [1_240] }), 'Approximate; null without a known time');

export const Statistics = objectOf('Statistics', {
  from: Timestamp,
  to: Timestamp,
  step: enumOf(['hour', 'day'], 'StatisticsStep'),
  series: Type.Array(
    objectOf('StatisticsSeries', {
      key: Type.String({ description: 'The value of `by`, or `all`', examples: ['example.com'] }),
      points: Type.Array(objectOf('StatisticsPoint', { at: Timestamp, ...counts }), {
        description: 'Hours or days in which messages were accepted, in their order; those without any are left out',
      }),
      totals: objectOf('StatisticsCounts', counts),
      rates: objectOf('StatisticsRates', {
        delivery: rate('Delivered of those sent'),
        bounce: rate('Bounced of those sent'),
        complaint: rate('Complained of those delivered'),
        open: rate('Opened of those delivered'),
        click: rate('Clicked of those delivered'),
      }),
      time_to_delivery_ms: objectOf('StatisticsTimes', { p50: percentile, p95: percentile }),
    }),
    { description: 'The 50 with the most accepted messages, most first' },
  ),
});
