/** Limits the rate at which this worker sends messages from each number. */
export interface MessagePace {
  /**
   * Reserves a slot for a message; repeated calls return the same slot.
   * @returns milliseconds until the slot; 0 if it is due, which uses it up
   */
  readonly reserve: (numberId: string, messageId: string) => number;
}

/** The default limit of Meta and Twilio for one number. */
const MESSAGES_PER_SECOND = 80;
/** An idle number may send the messages of so many seconds in a burst. */
const BURST_SECONDS = 1;
/** An unused slot is deleted this long after its time. */
const SLOT_RETENTION_MS = 60_000;

interface Schedule {
  nextSlotAt: number;
  /** Reserved slots by message id. */
  readonly slots: Map<string, number>;
}

/** @param now a monotonic clock in milliseconds */
export function makeMessagePace(
  perSecond = MESSAGES_PER_SECOND,
  now: () => number = () => performance.now(),
): MessagePace {
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
      const time = now();
      sweep(time);
      const schedule = schedules.get(numberId) ?? { nextSlotAt: -Infinity, slots: new Map<string, number>() };
      schedules.set(numberId, schedule);
      let slotAt = schedule.slots.get(messageId);
      if (slotAt === undefined) {
        slotAt = Math.max(schedule.nextSlotAt, time - BURST_SECONDS * 1_000 + intervalMs);
        schedule.nextSlotAt = slotAt + intervalMs;
      }
      if (slotAt <= time) {
        schedule.slots.delete(messageId);
        return 0;
      }
      schedule.slots.set(messageId, slotAt);
      return Math.ceil(slotAt - time);
    },
  };
}
