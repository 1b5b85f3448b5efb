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

/** A holder such as an organization, or the networks that contain it, from the largest to itself: each shares fairly with its equals. */
export type Holder = string | readonly string[];

/** A bounded number of slots for expensive work, shared fairly among holders such as networks or organizations. */
export function makeFairSlots({ slots, maxWaiting, refuse }: SlotLimits) {
  const priority = new RotatingQueue();
  const others = new RotatingQueue();
  let running = 0;

  /**
   * Runs `work` in a slot. Holders with waiting work are served in rotation; priority work is served first.
   * @throws the error of `refuse` if too much work is waiting
   */
  async function run<T>(holder: Holder, work: () => Promise<T>, { isPriority = false } = {}): Promise<T> {
    const queue = isPriority ? priority : others;
    const path = typeof holder === 'string' ? [holder] : holder;
    if (running < slots) running++;
    else {
      if (queue.size >= maxWaiting && !queue.evictFor(path, refuse)) throw refuse();
      // The work that finishes passes its slot to this waiter.
      await new Promise<void>((start, reject) => queue.add(path, { start, reject }));
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

/** The waiters of a holder and, in rotation, of the holders within it. */
class RotatingQueue {
  size = 0;
  readonly #within = new Map<string, RotatingQueue>();
  readonly #waiters: Waiter[] = [];

  add([name, ...path]: readonly string[], waiter: Waiter): void {
    this.size++;
    if (name === undefined) {
      this.#waiters.push(waiter);
      return;
    }
    const queue = this.#within.get(name) ?? new RotatingQueue();
    this.#within.set(name, queue);
    queue.add(path, waiter);
  }

  /** Removes the first waiter of the next holder in rotation. */
  shift(): Waiter | undefined {
    if (this.size === 0) return undefined;
    this.size--;
    const [next] = this.#within;
    if (!next) return this.#waiters.shift();
    const [name, queue] = next;
    const waiter = queue.shift();
    this.#within.delete(name);
    // A holder with more waiting work goes to the end of the rotation.
    if (queue.size > 0) this.#within.set(name, queue);
    return waiter;
  }

  /**
   * Rejects the last waiter of the holder with the most waiters, at the first level at which another holder has two more than that of
   * `path`. @returns false if there is none
   */
  evictFor([name, ...path]: readonly string[], refuse: () => Error): boolean {
    if (name === undefined) return false;
    const own = this.#within.get(name);
    const longest = this.#longest();
    const isEvicted =
      longest && longest.size > (own?.size ?? 0) + 1
        ? longest.#evictLast(refuse)
        : Boolean(own?.evictFor(path, refuse));
    if (isEvicted) this.#removeOne();
    return isEvicted;
  }

  #evictLast(refuse: () => Error): boolean {
    const longest = this.#longest();
    if (longest) longest.#evictLast(refuse);
    else this.#waiters.pop()?.reject(refuse());
    this.#removeOne();
    return true;
  }

  /** Forgets holders whose last waiter was removed. */
  #removeOne(): void {
    this.size--;
    for (const [name, queue] of this.#within) if (queue.size === 0) this.#within.delete(name);
  }

  #longest(): RotatingQueue | undefined {
    const [longest] = [...this.#within.values()].sort((a, b) => b.size - a.size);
    return longest;
  }
}
