import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Fault } from './fault.ts';
import { FAULTS } from './faults.ts';
import { openResults, printMarkdown, printResults } from './results.ts';
import { startHarness, type RunResult, type Harness, type HarnessOptions } from './harness.ts';

/**
 * `npm run faults [-- fault… --runs 20 --seed 1 --seconds 30 --minutes 10 --again]`: runs each or the named faults so many times
 * and compares the records of all parties. Earlier runs count, unless `--again` is given. `--overlap 3` begins the next run while
 * up to three others wait for their verdict, which makes recovery slower. `--dev` runs from source with Temporal's development
 * server. `--table` only prints the results, `--markdown` prints them for docs/guarantees.md.
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
    overlap: { type: 'string', default: '0' },
    again: { type: 'boolean', default: false },
    table: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
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
/** With all proxies, so that most faults share a stack. */
const SHARED: Fault['stack'] = {
  proxies: [
    'api-postgres',
    'api-temporal',
    'worker-postgres',
    'worker-temporal',
    'worker-provider',
    'worker-smtp',
    'provider-api',
  ],
};
const options: HarnessOptions = {
  seconds: Number(values.seconds),
  minutes: Number(values.minutes),
  load: Number(values.load),
  production: !values.dev,
  print: (line) => console.log(line),
};
let shared: Harness | undefined;
const awaiting = new Set<Promise<void>>();
/** Runs that may wait for their verdict while the next one begins. */
const maxOverlap = Number(values.overlap);

if (!values.table && !values.markdown) {
  console.log(`Seed ${seed}`);
  try {
    for (const [index, name] of names.entries()) await runFault(name, index);
    await Promise.all(awaiting);
  } finally {
    await shared?.close();
  }
}
if (values.markdown) printMarkdown(results);
else printResults(results);
const isWrong = names.some((name) => results.of(name).some(({ wrong }) => wrong.length > 0));
process.exit(isWrong ? 1 : 0);

async function runFault(name: string, index: number): Promise<void> {
  const fault = FAULTS[name];
  if (!fault) return;
  if (values.again) results.forget(name);
  const done = results.of(name).length;
  // One storm takes as long as all runs of another fault.
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
  const isApart = ['env', 'files', 'postgres'].some((option) => option in (fault.stack ?? {}));
  const harness = isApart ? await startHarness(options, fault.stack) : (shared ??= await startHarness(options, SHARED));
  try {
    for (let run = done; run < wanted; run++) {
      if (fault.isLong) await Promise.all(awaiting);
      const { result } = await harness.run(name, fault, seed + run);
      const reported = result.then((known) => report(known, `${run + 1}/${wanted}`));
      awaiting.add(reported);
      reported.then(
        () => awaiting.delete(reported),
        () => undefined,
      );
      if (isApart) await reported;
      while (awaiting.size > maxOverlap) await Promise.race(awaiting);
    }
  } finally {
    if (isApart) await harness.close();
  }
}

function report(result: RunResult, count: string): void {
  results.add(result);
  const { fault, seed: own, accepted, explained, handedOver, settled, wrong } = result;
  const verdict = wrong.length === 0 ? 'no violation' : `${wrong.length} VIOLATIONS`;
  const times = `handed over within ${handedOver / 1_000} s, settled within ${settled / 1_000} s`;
  const numbers = `${accepted} accepted, ${explained} twice as explained`;
  console.log(`  ${fault} ${count}, seed ${own}: ${numbers}, ${times}: ${verdict}`);
  for (const sentence of wrong.slice(0, 20)) console.log(`    ${sentence}`);
}
