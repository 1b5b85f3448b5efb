/** Limits the rate at which this worker sends messages from each number. */
export interface MessagePace {
  /**
   * Reserves a slot for a message; repeated calls return the same slot.
   * @returns milliseconds until the slot; 0 if it is due, which uses it up
   */
  readonly reserve: (numberId: string, messageId: string) => number;
  /**
   * Reserves a slot without using it up, if it is at most `maxAheadMs` away.
   * @returns whether it did, and the milliseconds until the slot
   */
  readonly reserveAhead: (
    numberId: string,
    messageId: string,
    maxAheadMs: number,
  ) => { readonly isReserved: boolean; readonly waitMs: number };
}

/** An idle number may send the messages of so many seconds in a burst. */
const BURST_SECONDS = 1;
/** An unused slot is deleted this long after its time. */
const SLOT_RETENTION_MS = 60_000;

interface Schedule {
  nextSlotAt: number;
  /** Reserved slots by message id. */
  readonly slots: Map<string, number>;
}

/**
 * @param perSecond the setting `NUMBER_MESSAGES_PER_SECOND`. By default Meta and Twilio take 80 a second of a number.
 * @param now a monotonic clock in milliseconds
 */
export function makeMessagePace(perSecond: number, now: () => number = () => performance.now()): MessagePace {
  const schedules = new Map<string, Schedule>();
  const intervalMs = 1_000 / perSecond;
  let sweptAt = now();

  /** Deletes slots of messages that another worker delivers, and idle schedules. */
  const sweep = (time: number): void => {
    if (time - sweptAt < SLOT_RETENTION_MS) return;
    sweptAt = time;
    for (const [numberId, { nextSlotAt, slots }] of schedules) {
      for (const [messageId, slotAt] of slots) if (slotAt < time - SLOT_RETENTION_MS) slots.delete(messageId);
      if (slots.size === 0 && nextSlotAt < time - SLOT_RETENTION_MS) schedules.delete(numberId);
    }
  };

  return {
    reserve(numberId, messageId) {
      const { waitMs } = this.reserveAhead(numberId, messageId, Infinity);
      if (waitMs === 0) schedules.get(numberId)?.slots.delete(messageId);
      return waitMs;
    },
    reserveAhead(numberId, messageId, maxAheadMs) {
      const time = now();
      sweep(time);
      const schedule = schedules.get(numberId) ?? { nextSlotAt: -Infinity, slots: new Map<string, number>() };
      schedules.set(numberId, schedule);
      const reservedAt = schedule.slots.get(messageId);
      const slotAt = reservedAt ?? Math.max(schedule.nextSlotAt, time - BURST_SECONDS * 1_000 + intervalMs);
      const waitMs = Math.max(0, Math.ceil(slotAt - time));
      const isReserved = reservedAt !== undefined || waitMs <= maxAheadMs;
      if (isReserved && reservedAt === undefined) {
        schedule.nextSlotAt = slotAt + intervalMs;
        schedule.slots.set(messageId, slotAt);
      }
      return { isReserved, waitMs };
    },
  };
}
