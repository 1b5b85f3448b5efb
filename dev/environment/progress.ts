import { stripVTControlCharacters } from 'node:util';

export interface Step {
  /** Sets the status of the step, or the last output of its tool. */
  readonly detail: (text: string) => void;
  /** Sets a more specific name for the final line. */
  readonly rename: (name: string) => void;
}

export interface Progress {
  /** Runs `work` and prints a line with name and time when it ends or fails. Steps may overlap. */
  readonly step: <T>(name: string, work: (step: Step) => Promise<T>) => Promise<T>;
  readonly print: (line: string) => void;
}

interface Running {
  name: string;
  detail: string;
  readonly started: number;
  /** The time of its last line if there is no terminal. */
  printed?: number;
}

/** Standard output, or a test's stub. */
interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly write: (text: string) => unknown;
}

const CLEAR_LINE = '\r\u001B[2K';

/** The time in which a step prints nothing. */
const QUIET_MS = 2_000;
/** The interval of redrawing on a terminal. */
const REDRAW_MS = 200;
/** The interval of lines about an unfinished step without a terminal. */
const REPEAT_MS = 60_000;

/**
 * Prints one line per completed step. On a terminal, steps that take longer than two seconds share a line that is redrawn;
 * otherwise each of them prints a line every minute.
 */
export function makeProgress(terminal: Terminal): Progress {
  const running = new Set<Running>();
  let timer: NodeJS.Timeout | undefined;

  const slow = () => [...running].filter((step) => Date.now() - step.started >= QUIET_MS);
  const print = (line: string) => {
    terminal.write(`${terminal.isTTY ? CLEAR_LINE : ''}${line}\n`);
  };
  const tick = () => {
    const steps = slow();
    if (steps.length === 0) return;
    if (terminal.isTTY) {
      const line = steps.map(describe).join(' · ');
      terminal.write(CLEAR_LINE + line.slice(0, (terminal.columns ?? 80) - 1));
    } else {
      const now = Date.now();
      for (const step of steps.filter(({ printed = -Infinity }) => now - printed >= REPEAT_MS)) {
        step.printed = now;
        print(describe(step));
      }
    }
  };

  return {
    print,
    async step(name, work) {
      const step: Running = { name, detail: '', started: Date.now() };
      running.add(step);
      timer ??= setInterval(tick, REDRAW_MS);
      const finish = (sign: string) => {
        running.delete(step);
        if (running.size === 0) {
          clearInterval(timer);
          timer = undefined;
        }
        print(`  ${sign} ${step.name}  ${duration(Date.now() - step.started)}`);
      };
      try {
        const result = await work({
          detail: (text) => (step.detail = stripVTControlCharacters(text).trim()),
          rename: (better) => (step.name = better),
        });
        finish('✓');
        return result;
      } catch (error) {
        finish('✗');
        throw error;
      }
    },
  };
}

function describe({ name, detail, started }: Running): string {
  return `  … ${name}  ${duration(Date.now() - started)}${detail === '' ? '' : `  ${detail}`}`;
}

/** Formats milliseconds: `0.4 s`, `12 s`, `2 min 50 s`. */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
