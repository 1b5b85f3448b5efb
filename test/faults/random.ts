/** Pseudorandom numbers, the same for the same seed, so that a run can be repeated. */
export interface Random {
  /** From `low` up to, and without, `high`. */
  readonly between: (low: number, high: number) => number;
  readonly integer: (low: number, high: number) => number;
  readonly chance: (share: number) => boolean;
}

/** @param seed any whole number; its lower 32 bits count */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    // A Weyl sequence whose terms are mixed by a multiply-and-shift hash.
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number) => low + next() * (high - low);
  return { between, integer: (low, high) => Math.floor(between(low, high)), chance: (share) => next() < share };
}
