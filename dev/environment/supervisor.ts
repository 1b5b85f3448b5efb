import { startPart, type BackOff, type Part, PartFailed, type PartSpec } from './part.ts';
import type { Recorded } from './processes.ts';
import { duration, type Progress } from './progress.ts';

/** The parts, in the order in which they are stopped. */
export const PARTS = ['api', 'worker', 'simulator', 'temporal', 'postgres'] as const;
export type PartName = (typeof PARTS)[number];
/** The processes by part; one that has just died stands until its successor runs. */
export type Processes = Partial<Record<PartName, Recorded>>;

export interface Supervisor {
  /**
   * Starts a part and keeps it running from then on. @returns what it said of itself
   * @throws PartFailed when it does not come to serve
   */
  readonly start: <Facts>(name: PartName, spec: PartSpec<Facts>) => Promise<Facts>;
  /** Stops some parts in their order; without names all of them and for good. Also those that are just starting. */
  readonly stop: (names?: readonly PartName[]) => Promise<void>;
}

interface Entry {
  readonly stopping: AbortController;
  readonly part: Promise<Part<unknown>>;
}

const BACK_OFF: BackOff = { first: 200, longest: 5_000, forgiveAfter: 10_000 };
const PORT_TRIES = 5;
/** Of what a part printed last, when it is told on the terminal. */
const LONGEST_LINE = 200;

/**
 * Keeps the parts running.
 * @param onProcesses told of all processes whenever one was started
 */
export function makeSupervisor(
  progress: Pick<Progress, 'say'>,
  onProcesses: (processes: Processes) => void,
  backOff: BackOff = BACK_OFF,
): Supervisor {
  const processes: Processes = {};
  const entries = new Map<PartName, Entry>();
  let isOver = false;

  function watcher(name: PartName, mark: string) {
    return {
      onPid(pid: number) {
        processes[name] = { pid, mark };
        onProcesses({ ...processes });
      },
      onDeath(how: string, lines: string[], pause: number) {
        progress.say([`! ${name} ${how}; it is started again in ${duration(pause)}`, ...lines.map(quote)].join('\n'));
      },
      onReturn(milliseconds: number) {
        progress.say(`! ${name} serves again after ${duration(milliseconds)}`);
      },
    };
  }

  return {
    async start(name, spec) {
      if (isOver) throw new Error('stopping');
      const stopping = new AbortController();
      const part = startPart(spec, backOff, watcher(name, spec.mark), stopping.signal);
      entries.set(name, { stopping, part });
      try {
        return (await part).facts;
      } catch (error) {
        if (error instanceof PartFailed) error.message = `${name} ${error.message}`;
        throw error;
      }
    },
    async stop(names) {
      if (names === undefined) isOver = true;
      const stopping = PARTS.filter((name) => names?.includes(name) ?? true).flatMap((name) => entries.get(name) ?? []);
      // None of them may come back while it is another one's turn.
      for (const entry of stopping) entry.stopping.abort();
      for (const { part } of stopping) {
        // One that failed to start has ended already.
        await (await part.catch(() => undefined))?.stop();
      }
    },
  };
}

function quote(line: string): string {
  return `    ${line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line}`;
}

/**
 * Starts something on ports that it chooses, again with others when one of them was taken by another process between
 * choice and start: another home that starts at the same time chooses alike.
 */
export async function onFreePorts<T>(start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof PartFailed && error.portTaken && attempt < PORT_TRIES)) throw error;
    }
  }
}
