// Draws the charts of a page. A table below each has the same numbers.

/** A stacked chart of bars: `data-chart` holds {at: [seconds], series: [{name, tone, values}], step: seconds}. */
function draw(figure) {
  const plot = figure.querySelector('.plot');
  const reading = figure.querySelector('.reading');
  const { at, series, step } = JSON.parse(figure.dataset.chart);
  const { color: muted } = getComputedStyle(reading);
  const { borderTopColor: line } = getComputedStyle(figure);
  const colours = series.map(({ tone }) => getComputedStyle(figure.querySelector(`.series-${tone}`)).color);

  // Stacked: each series is the sum of itself and those before it, and the highest is drawn first.
  const sums = [];
  for (const { values } of series) {
    const below = sums.at(-1);
    sums.push(values.map((value, index) => value + (below?.[index] ?? 0)));
  }
  const order = series.map((_, index) => index).reverse();
  const axis = {
    stroke: muted,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
  };
  const width = () => plot.clientWidth;
  const chart = new uPlot(
    {
      width: width(),
      height: 288,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { range: () => [at[0] - step / 2, at.at(-1) + step / 2] },
        y: { range: (_, _low, high) => [0, Math.max(high, 4)] },
      },
      axes: [
        axis,
        { ...axis, size: 56, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6] },
      ],
      series: [
        {},
        ...order.map((index) => ({
          label: series[index].name,
          stroke: colours[index],
          fill: colours[index],
          width: 0,
          points: { show: false },
          paths: uPlot.paths.bars({ size: [0.85, 60], gap: 0 }),
        })),
      ],
      hooks: { setCursor: [({ cursor }) => read(cursor.idx)] },
    },
    [at, ...order.map((index) => sums[index])],
    plot,
  );

  function read(index) {
    if (index === null || index === undefined) {
      reading.textContent = '';
      return;
    }
    const when = new Intl.DateTimeFormat(undefined, {
      dateStyle: 'medium',
      ...(step < 86_400 && { timeStyle: 'short' }),
      ...(step >= 86_400 && { timeZone: 'UTC' }),
    }).format(new Date(at[index] * 1000));
    const counts = series
      .filter(({ values }) => values[index] > 0)
      .map(({ name, values }) => `${name} ${values[index].toLocaleString()}`);
    reading.textContent = `${when}: ${counts.join(', ') || 'nothing'}`;
  }

  new ResizeObserver(() => chart.setSize({ width: width(), height: 288 })).observe(plot);
  return chart;
}

let charts = [];
function drawAll() {
  for (const chart of charts) chart.destroy();
  charts = [...document.querySelectorAll('figure[data-chart]')].map(draw);
}
drawAll();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
