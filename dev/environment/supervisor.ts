import { type PartName, PARTS } from '../../src/main/dev-file.ts';
import { startPart, type BackOff, type Part, PartFailed, type PartSpec } from './part.ts';
import type { RecordedProcess } from './processes.ts';
import { duration, type Progress } from './progress.ts';

/** The processes by part. A dead one is listed until it is replaced. */
export type Processes = Partial<Record<PartName, RecordedProcess>>;

export interface Supervisor {
  /**
   * Starts a part and keeps it running. @returns the facts of its `waitUntilReady`
   * @throws PartFailed if it does not become ready
   */
  readonly start: <Facts>(name: PartName, spec: PartSpec<Facts>) => Promise<Facts>;
  /**
   * Stops the given parts in their order, including those that are starting. Without names it stops all, and prevents further
   * starts.
   */
  readonly stop: (names?: readonly PartName[]) => Promise<void>;
}

interface Entry {
  readonly stopping: AbortController;
  readonly part: Promise<Part<unknown>>;
}

const RESTART_BACK_OFF: BackOff = { firstMs: 200, maxMs: 5_000, resetAfterMs: 10_000 };
const MAX_PORT_ATTEMPTS = 5;
/** Maximum length of a part's last lines on the terminal, in characters. */
const MAX_LINE_LENGTH = 200;

/** @param onProcesses called with all processes after one has started */
export function makeSupervisor(
  progress: Pick<Progress, 'print'>,
  onProcesses: (processes: Processes) => void,
  backOff: BackOff = RESTART_BACK_OFF,
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
        progress.print([`! ${name} ${how}; it is started again in ${duration(pause)}`, ...lines.map(quote)].join('\n'));
      },
      onReady(downtimeMs: number) {
        progress.print(`! ${name} serves again after ${duration(downtimeMs)}`);
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
      // No part may be restarted while another one stops.
      for (const entry of stopping) entry.stopping.abort();
      for (const { part } of stopping) {
        // A part that failed to start has already ended.
        await (await part.catch(() => undefined))?.stop();
      }
    },
  };
}

function quote(line: string): string {
  return `    ${line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH)}…` : line}`;
}

/** Calls `start`, which chooses ports, and repeats it if another process took one of them between choice and start. */
export async function onFreePorts<T>(start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof PartFailed && error.portTaken && attempt < MAX_PORT_ATTEMPTS)) throw error;
    }
  }
}
