import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { FAULTS } from './faults.ts';
import { openResults, printResults } from './results.ts';
import { runSeries } from './series.ts';

/**
 * `npm run faults [-- fault… --runs 20 --seed 1 --seconds 30 --minutes 10 --again]`: does each fault, or those that are
 * named, so many times, and compares what everybody saw. What a fault lacks of its runs is added; `--again` begins anew.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    seconds: { type: 'string', default: '30' },
    minutes: { type: 'string', default: '10' },
    load: { type: 'string', default: '1' },
    dev: { type: 'boolean', default: false },
    again: { type: 'boolean', default: false },
    table: { type: 'boolean', default: false },
  },
});
const FOLDER = fileURLToPath(new URL('../../.faults/', import.meta.url));

const unknown = positionals.find((name) => !(name in FAULTS));
if (unknown !== undefined) {
  console.error(`There is no fault ${unknown}; there are ${Object.keys(FAULTS).join(', ')}.`);
  process.exit(1);
}
const results = openResults(FOLDER);
const names = positionals.length > 0 ? positionals : Object.keys(FAULTS);
const seed = Number(values.seed);
if (!values.table) {
  console.log(`Seed ${seed}`);
  for (const [index, name] of names.entries()) await runFault(name, index);
}
printResults(results);
const isWrong = names.some((name) => results.of(name).some(({ wrong }) => wrong.length > 0));
process.exit(isWrong ? 1 : 0);

async function runFault(name: string, index: number): Promise<void> {
  const fault = FAULTS[name];
  if (!fault) return;
  if (values.again) results.forget(name);
  const done = results.of(name).length;
  // One storm is as long as the runs of another fault together.
  const wanted = name === 'storm' ? 1 : Number(values.runs);
  if (done >= wanted) {
    console.log(`${name}: ${done} runs are done`);
    return;
  }
  const missing = fault.missing?.();
  if (missing !== undefined) {
    console.log(`${name}: left out, ${missing}`);
    return;
  }
  console.log(`${name} (${index + 1} of ${names.length}): ${fault.what}, ${wanted - done} runs`);
  await runSeries(name, fault, {
    runs: wanted - done,
    seed: seed + done,
    seconds: Number(values.seconds),
    minutes: Number(values.minutes),
    load: Number(values.load),
    production: !values.dev,
    say: (line) => console.log(line),
    onRun(result) {
      results.add(result);
      const { run, accepted, explained, handedOver, settled, wrong } = result;
      const verdict = wrong.length === 0 ? 'all well' : `${wrong.length} WRONG`;
      const times = `handed over within ${handedOver / 1_000} s, settled within ${settled / 1_000} s`;
      console.log(
        `  ${name} ${done + run}/${wanted}, seed ${result.seed}: ${accepted} accepted, ${explained} twice as explained, ${times}: ${verdict}`,
      );
      for (const sentence of wrong.slice(0, 20)) console.log(`    ${sentence}`);
    },
  });
}
