interface SlotLimits {
  readonly slots: number;
  /** The maximum number of waiting calls, for priority work and for other work each. */
  readonly maxWaiting: number;
  /** Creates the error for work that exceeds `maxWaiting`. */
  readonly refuse: () => Error;
}

interface Waiter {
  readonly start: () => void;
  readonly reject: (error: Error) => void;
}

/** A bounded number of slots for expensive work, shared fairly among holders such as networks or organizations. */
export function makeFairSlots({ slots, maxWaiting, refuse }: SlotLimits) {
  const priority = new RotatingQueue();
  const others = new RotatingQueue();
  let running = 0;

  /**
   * Runs `work` in a slot. Holders with waiting work are served in rotation; priority work is served first.
   * @throws the error of `refuse` if too much work is waiting
   */
  async function run<T>(holder: string, work: () => Promise<T>, { isPriority = false } = {}): Promise<T> {
    const queue = isPriority ? priority : others;
    if (running < slots) running++;
    else {
      if (queue.size >= maxWaiting && !queue.evictFor(holder, refuse)) throw refuse();
      // The work that finishes passes its slot to this waiter.
      await new Promise<void>((start, reject) => queue.add(holder, { start, reject }));
    }
    try {
      return await work();
    } finally {
      const next = priority.shift() ?? others.shift();
      if (next) next.start();
      else running--;
    }
  }
  return { run };
}

class RotatingQueue {
  size = 0;
  readonly #queues = new Map<string, Waiter[]>();

  add(holder: string, waiter: Waiter): void {
    this.#queues.set(holder, [...(this.#queues.get(holder) ?? []), waiter]);
    this.size++;
  }

  /** Removes the first waiter of the next holder in rotation. */
  shift(): Waiter | undefined {
    const [first] = this.#queues;
    if (!first) return undefined;
    const [holder, [waiter, ...rest]] = first;
    this.#queues.delete(holder);
    // A holder with more waiting work goes to the end of the rotation.
    if (rest.length > 0) this.#queues.set(holder, rest);
    this.size--;
    return waiter;
  }

  /** Rejects the last waiter of the holder with the most waiters. @returns false unless it has two more than `holder` */
  evictFor(holder: string, refuse: () => Error): boolean {
    const own = this.#queues.get(holder)?.length ?? 0;
    const [longest] = [...this.#queues].sort(([, a], [, b]) => b.length - a.length);
    if (!longest || longest[1].length <= own + 1) return false;
    longest[1].pop()?.reject(refuse());
    this.size--;
    return true;
  }
}
