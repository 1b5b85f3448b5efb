const figures = {
  accepted: 403,
  sent: 400,
  delivered: 392,
  delayed: 6,
  bounced: 5,
  complained: 0,
  opened: 196,
  clicked: 39,
  suppressed: 2,
  rejected: 0,
  failed: 0,
  canceled: 1,
};

/** The example response of `GET /v1/stats`. */
export const statistics = {
  from: '2026-03-01T00:00:00.000Z',
  to: '2026-03-02T00:00:00.000Z',
  step: 'day',
  series: [
    {
      key: 'all',
      points: [{ at: '2026-03-01T00:00:00.000Z', ...figures }],
      totals: figures,
      rates: { delivery: 0.98, bounce: 0.0125, complaint: 0, open: 0.5, click: 0.0995 },
      time_to_delivery_ms: { p50: 1_240, p95: 3_870 },
    },
  ],
};
