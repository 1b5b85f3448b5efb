import { stripVTControlCharacters } from 'node:util';

/** One thing that is being done. */
export interface Step {
  /** Says how far it is, or what the tool that does it printed last. */
  readonly detail: (text: string) => void;
  /** Says more exactly what was done, for the line that ends the step. */
  readonly rename: (name: string) => void;
}

export interface Progress {
  /** Does `work`, and prints a line with its name and time at the end, however it ends. Steps may overlap. */
  readonly step: <T>(name: string, work: (step: Step) => Promise<T>) => Promise<T>;
  /** Prints a line. */
  readonly say: (line: string) => void;
}

interface Running {
  name: string;
  detail: string;
  readonly started: number;
  /** When it was last printed where nothing can be drawn again; `undefined` before the first time. */
  printed?: number;
}

/** Where the story is told: standard output, or a test's ear. */
export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly write: (text: string) => unknown;
}

const CLEAR_LINE = '\r\u001B[2K';

/** When to tell of what is not finished, in milliseconds. */
export interface Pace {
  /** How long a step may stay silent. */
  readonly quiet: number;
  /** How often the line of a terminal is drawn again. */
  readonly redraw: number;
  /** How often a line is printed where nothing can be drawn again. */
  readonly repeat: number;
}
const PACE: Pace = { quiet: 2_000, redraw: 200, repeat: 60_000 };

/**
 * Reports what is going on. A finished step is one line. Steps that take longer than two seconds share one line that is
 * redrawn on a terminal; elsewhere each of them prints a line, and another one every minute.
 */
export function makeProgress(terminal: Terminal, pace: Pace = PACE): Progress {
  const running = new Set<Running>();
  let timer: NodeJS.Timeout | undefined;

  const slow = () => [...running].filter((step) => Date.now() - step.started >= pace.quiet);
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
      for (const step of steps.filter(({ printed = -Infinity }) => now - printed >= pace.repeat)) {
        step.printed = now;
        print(describe(step));
      }
    }
  };

  return {
    say: print,
    async step(name, work) {
      const step: Running = { name, detail: '', started: Date.now() };
      running.add(step);
      timer ??= setInterval(tick, pace.redraw);
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

/** Milliseconds as people read them: `0.4 s`, `12 s`, `2 min 50 s`. */
export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
