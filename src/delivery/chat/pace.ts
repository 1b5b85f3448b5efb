/** When the messages of a number may leave, one worker's share. */
export interface ChatPace {
  /**
   * Takes a message's place in the queue of its number, the same one however often it is asked before it is used.
   * @returns milliseconds until its turn; 0 when it is now, which uses the place up
   */
  readonly wait: (numberId: string, messageId: string) => number;
}

/** Messages of a number per second: what Meta and Twilio allow a number that nobody has raised. */
export const MESSAGES_PER_SECOND = 80;
/** Seconds of messages that may leave at once after silence. */
const BURST = 1;
/** Milliseconds after its turn for which a place is kept for a message that does not come. */
const KEPT = 60_000;

interface Line {
  /** When the next place that is given out has its turn. */
  next: number;
  readonly places: Map<string, number>;
}

/** @param now a monotonic clock in milliseconds */
export function makeChatPace(perSecond = MESSAGES_PER_SECOND, now: () => number = () => performance.now()): ChatPace {
  const lines = new Map<string, Line>();
  const apart = 1_000 / perSecond;
  let swept = now();

  /** Forgets places whose messages another worker carries by now, and lines that are silent. */
  const sweep = (time: number): void => {
    if (time - swept < KEPT) return;
    swept = time;
    for (const [numberId, { next, places }] of lines) {
      for (const [messageId, turn] of places) if (turn < time - KEPT) places.delete(messageId);
      if (places.size === 0 && next < time - KEPT) lines.delete(numberId);
    }
  };

  return {
    wait(numberId, messageId) {
      const time = now();
      sweep(time);
      const line = lines.get(numberId) ?? { next: -Infinity, places: new Map<string, number>() };
      lines.set(numberId, line);
      let turn = line.places.get(messageId);
      if (turn === undefined) {
        turn = Math.max(line.next, time - BURST * 1_000 + apart);
        line.next = turn + apart;
      }
      if (turn <= time) {
        line.places.delete(messageId);
        return 0;
      }
      line.places.set(messageId, turn);
      return Math.ceil(turn - time);
    },
  };
}
